// SPDX-License-Identifier: Apache-2.0
// A model as Hugging Face's from_pretrained loads it: config.json, model.safetensors and the files of its tokenizer.
#pragma once
#include <string>

namespace zs::pretrained {

/// Copies what the tokenizer `from`, a folder or a file, is read from, and how images are prepared, into the folder
/// `to`. Gives how many files that were. Throws Error with the path.
int copy_tokenizer(const std::string& from, const std::string& to);

struct Exported {
  std::string checkpoint;  ///< its folder
  int tensors = 0;
  bool tokenizer = false;  ///< its files are there too
  bool merged = false;     ///< adapters were added to the weights
};

/// Writes the weights, adapters merged into them, of a checkpoint of the run in the folder `run` into the folder `to`,
/// which is made and must be empty. `checkpoint` is a step or a name, "40", "checkpoint_40", "final_checkpoint"; "" is
/// the final one. Throws Error where the run has none, where its sums do not hold, and where `to` holds anything.
Exported export_run(const std::string& run, const std::string& checkpoint, const std::string& to);

}  // namespace zs::pretrained

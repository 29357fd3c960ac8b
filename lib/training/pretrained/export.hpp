// SPDX-License-Identifier: Apache-2.0
// Exports a model for Hugging Face's from_pretrained: config.json, model.safetensors and the files of its tokenizer.
#pragma once
#include <string>

namespace zs::pretrained {

/// Copies the files of the tokenizer `from`, a folder or a file, and of the image preprocessing, into the folder `to`.
/// Returns the number of files. Throws Error with the path.
int copy_tokenizer(const std::string& from, const std::string& to);

struct Exported {
  std::string checkpoint;  ///< its folder
  int tensors = 0;
  bool tokenizer = false;  ///< the tokenizer's files were copied too
  bool merged = false;     ///< adapters were added to the weights
};

/// Writes the weights, with adapters merged, of a checkpoint of the run in the folder `run` into the folder `to`, which
/// is created and must be empty. `checkpoint` is a step or a name, "40", "checkpoint_40", "final_checkpoint"; "" is the
/// final one. Throws Error if the run has none, if its checksums do not match, and if `to` is not empty.
Exported export_run(const std::string& run, const std::string& checkpoint, const std::string& to);

}  // namespace zs::pretrained

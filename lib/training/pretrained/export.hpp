// SPDX-License-Identifier: Apache-2.0
// Exports a model for Hugging Face's from_pretrained: config.json, model.safetensors and the files of its tokenizer.
#pragma once
#include <string>

#include "tensorfile/safetensors.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::pretrained {

/// Copies the files of the tokenizer `from`, a folder or a file, into the folder `to`. Returns the number of files.
/// Throws Error with the path.
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

// Merges a checkpoint's adapters into the products: W + scale B A.

/// The tensors of `weights`, whose file must outlive them, with their adapters merged: adds the adapters of
/// `configuration`, an adapter_config.json, to their products, in float64, rounded once to float32. Throws zs::Error,
/// located, if an adapter has no product or the file has no scale.
tensorfile::NamedTensors merged(const tensorfile::StateDict& weights, const std::string& configuration);

}  // namespace zs::pretrained

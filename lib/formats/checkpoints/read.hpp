// SPDX-License-Identifier: Apache-2.0
// Reads checkpoints of all frameworks.
#pragma once
#include <string>

#include "checkpoints/state.hpp"

namespace zs::checkpoints {

/// Reads `path`: a folder or a file of DeepSpeed, PyTorch's distributed checkpoints,
/// FSDP, Accelerate, Hugging Face's Trainer, Lightning, zs, or any file of
/// torch.save or safetensors, recognised by its files. Throws Error if it is none of
/// these or nothing can be read; a missing or damaged part is a fault of the state.
State read(const std::string& path);

// The individual readers.
/// A file of torch.save: only weights, or a trainer's dict (Lightning's, the user's own).
State read_torch_file(const std::string& path);
/// A folder of Hugging Face's, Trainer's, Accelerate's or FSDP's.
State read_folder(const std::string& folder);
/// A checkpoint of zs, also one without accelerator_states.
State read_zs(const std::string& folder);

}  // namespace zs::checkpoints

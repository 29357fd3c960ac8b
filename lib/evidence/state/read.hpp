// SPDX-License-Identifier: Apache-2.0
// One door to checkpoints of all frameworks.
#pragma once
#include <string>

#include "state/state.hpp"

namespace zs::state {

/// Reads what `path` names: a folder or a file of DeepSpeed, PyTorch's distributed checkpoints, FSDP, Accelerate,
/// Hugging Face's Trainer, Lightning, zs, or any file of torch.save or safetensors. What it is, its files say. Throws
/// Error where it is none of these or nothing of it can be read; what is missing or damaged in part is a fault of the
/// state.
State read(const std::string& path);

// The parts of it.
/// A file of torch.save: weights alone, or a dict of a trainer's (Lightning's, one's own).
State read_torch_file(const std::string& path);
/// A folder of Hugging Face's, Trainer's, Accelerate's or FSDP's.
State read_folder(const std::string& folder);
/// A checkpoint of zs.
State read_zs(const std::string& folder);

}  // namespace zs::state

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

// Checkpoints of DeepSpeed 0.10 to 0.19: ZeRO-0 to 3 with all forms of optimizer files,
// pipeline layers, and universal checkpoints. Layouts: deepspeed/runtime/engine.py,
// zero/stage_1_and_2.py, zero/stage3.py, bf16_optimizer.py.

/// Whether the folder is a checkpoint of DeepSpeed, or contains checkpoints and `latest`.
bool is_deepspeed(const std::string& folder);

/// Reads it. If `folder` contains several, reads the one that `latest` names. A missing or inconsistent part is a fault
/// of the state. Throws Error if nothing can be read.
State read_deepspeed(const std::string& folder);

/// The folder of one checkpoint: `folder` itself, or the one that `latest` or `latest_universal` names. Throws Error if
/// that does not exist or is outside `folder`.
std::string deepspeed_folder(const std::string& folder);

// The files of Megatron-core's torch_dist beside PyTorch's distributed checkpoint: `common.pt` has what all ranks
// share, the iteration, arguments, schedule, and the optimizer's groups with its step; `metadata.json` is written last.
// Format: megatron/core/dist_checkpointing/serialization.py, optimizer/distrib_optimizer.py.

/// Whether the folder has these files.
bool is_megatron(const std::string& folder);

/// Adds their content to the result of add_dcp(). A damaged file, and groups at different steps, are faults of the
/// state.
void add_megatron(State& into, const std::string& folder);

}  // namespace zs::checkpoints

// SPDX-License-Identifier: Apache-2.0
// Checkpoints of DeepSpeed 0.10 to 0.19: ZeRO-0 to 3 with all forms of optimizer files,
// pipeline layers, and universal checkpoints. Layouts: deepspeed/runtime/engine.py,
// zero/stage_1_and_2.py, zero/stage3.py, bf16_optimizer.py.
#pragma once
#include <string>

#include "checkpoints/state.hpp"

namespace zs::checkpoints {

/// Whether the folder is a checkpoint of DeepSpeed, or contains checkpoints and `latest`.
bool is_deepspeed(const std::string& folder);

/// Reads it. If `folder` contains several, reads the one that `latest` names. A missing or inconsistent part is a fault
/// of the state. Throws Error if nothing can be read.
State read_deepspeed(const std::string& folder);

/// The folder of one checkpoint: `folder` itself, or the one that `latest` or `latest_universal` names. Throws Error if
/// that does not exist or is outside `folder`.
std::string deepspeed_folder(const std::string& folder);

}  // namespace zs::checkpoints

// SPDX-License-Identifier: Apache-2.0
// Checkpoints of DeepSpeed 0.10 to 0.19: ZeRO-0 to 3 with all their forms of an optimizer's file, pipeline layers, and
// universal checkpoints. Layouts: deepspeed/runtime/engine.py, zero/stage_1_and_2.py, zero/stage3.py,
// bf16_optimizer.py.
#pragma once
#include <string>

#include "state/state.hpp"

namespace zs::state {

/// Whether the folder is a checkpoint of DeepSpeed, or one that holds such ones and `latest`.
bool is_deepspeed(const std::string& folder);

/// Reads it. `folder` may hold several; the one that `latest` names is read. What is missing or does not fit is a fault
/// of the state. Throws Error where nothing can be read.
State read_deepspeed(const std::string& folder);

/// The folder of one checkpoint that `folder` means: itself, or what `latest` or `latest_universal` names. Throws Error
/// where that names none, or a path elsewhere.
std::string deepspeed_folder(const std::string& folder);

}  // namespace zs::state

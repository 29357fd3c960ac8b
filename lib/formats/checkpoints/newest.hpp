// SPDX-License-Identifier: Apache-2.0
// Finds the newest checkpoint from which a training can resume.
#pragma once
#include <string>

namespace zs::checkpoints {

/// The path of the newest valid checkpoint in a folder, or in folders up to two levels below:
/// read() of state/read.hpp reads it without faults. A checkpoint is a folder or a .pt, .pth or
/// .ckpt file whose name ends with a number of steps or epochs (checkpoint_20, checkpoint-20,
/// global_step20, step=20.ckpt); the largest number is the newest, of equal ones the last
/// written. final_checkpoint, of zs, is newer than all others. "" if there is none.
std::string newest_whole(const std::string& folder);

}  // namespace zs::checkpoints

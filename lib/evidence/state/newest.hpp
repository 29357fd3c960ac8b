// SPDX-License-Identifier: Apache-2.0
// Which of a training's checkpoints it can go on from.
#pragma once
#include <string>

namespace zs::state {

/// The path of the newest checkpoint in a folder, or in folders up to two deep in it, that is whole: read() of
/// state/read.hpp reads it and names no fault. A checkpoint is a folder or a .pt, .pth or .ckpt file whose name ends
/// with a number, of steps or epochs (checkpoint_20, checkpoint-20, global_step20, step=20.ckpt); the largest is the
/// newest, of two alike the one written last. final_checkpoint, of zs, is newer than all others. "" where there is
/// none.
std::string newest_whole(const std::string& folder);

}  // namespace zs::state

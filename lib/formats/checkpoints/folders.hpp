// SPDX-License-Identifier: Apache-2.0
// Recognises checkpoints by the names in a folder, and files of tensors by their first bytes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::checkpoints {

/// A checkpoint in a folder of checkpoints, by its name: "checkpoint_100", "checkpoint-100", "step-100",
/// "iter_0000100", "global_step100", "epoch_1", "final_checkpoint".
struct Checkpoint {
  std::int64_t step = 0;  ///< INT64_MAX for the final one
  std::string path;
};
/// The checkpoints in a folder by step, the final one last.
std::vector<Checkpoint> checkpoints_in(const std::string& folder);

/// Whether a folder has a file that only checkpoints of Accelerate, FSDP and Hugging Face's Trainer have.
bool is_trainers(const std::string& folder);

/// Whether a folder has a file of zs's or Hugging Face's checkpoints: weights, gradients, optimizer state, config.json.
bool is_plain(const std::string& folder);

/// Whether a file is one of torch.save (also from before PyTorch 1.6) or safetensors, or an index of such, by its first
/// bytes and its name.
bool holds_tensors(const std::string& path);

// Finds the newest checkpoint from which a training can resume.

/// The path of the newest valid checkpoint in a folder, or in folders up to two levels below:
/// read() of state/read.hpp reads it without faults. A checkpoint is a folder or a .pt, .pth or
/// .ckpt file whose name ends with a number of steps or epochs (checkpoint_20, checkpoint-20,
/// global_step20, step=20.ckpt); the largest number is the newest, of equal ones the last
/// written. final_checkpoint, of zs, is newer than all others. "" if there is none.
std::string newest_whole(const std::string& folder);

}  // namespace zs::checkpoints

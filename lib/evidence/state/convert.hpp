// SPDX-License-Identifier: Apache-2.0
// Converts a checkpoint of any framework to another form; reads the result back and compares it before renaming it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoints/forms.hpp"

namespace zs::state {

struct Converted {
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> assumed{},  ///< what the form needs but the checkpoint does not contain
      left_out{};                      ///< what the form cannot store: "moments exp_avg, exp_avg_sq of 7 parameters"
};

/// Writes the checkpoint in that form to the new folder `to`, which appears whole or not at all, after the result was
/// read back and compared. Throws Error if the checkpoint has faults, or lacks what the form needs.
///
///   hf           model.safetensors with the weights that the model computes with, or their masters where the
///                checkpoint has no others, as from_pretrained reads them, and config.json where the checkpoint has
///                one; of tied parameters the first name
///   safetensors  the same, and optimizer.safetensors with masters, moments, steps, settings, schedules and random
///                states: all that the form of zs has, which read() takes back
///   dcp          PyTorch's distributed checkpoint with {"model", "optimizer", "lr_scheduler", "train_state"}, as
///                get_state_dict() names them; the model's weights are the numbers that the optimizer works on
///   deepspeed    the files of ZeRO-1 to 3 for so many ranks, and `latest`
///   universal    DeepSpeed's universal checkpoint, which it loads on any ranks
Converted convert(const checkpoints::State& state, const std::string& to, const checkpoints::Form& form);

}  // namespace zs::state

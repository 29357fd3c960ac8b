// SPDX-License-Identifier: Apache-2.0
// A checkpoint of any framework written in another form, read back and compared before it gets its name.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "state/state.hpp"

namespace zs::state {

struct Converted {
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string>
      left_out{};  ///< what the form has no place for: "moments exp_avg, exp_avg_sq of 7 parameters"
};

/// model.safetensors with the weights that the model computes with, or their masters where the checkpoint has no
/// others, as from_pretrained reads them, and config.json where the checkpoint has one. Of tied parameters the first
/// name is written. `to` is a folder that is not there yet. It appears whole or not at all. Throws Error where the
/// checkpoint has faults.
Converted convert_hf(const State& state, const std::string& to);

/// The same, and optimizer.safetensors with masters, moments, steps, settings, schedules and random states: all that
/// the form of zs has, which read() takes back.
Converted convert_safetensors(const State& state, const std::string& to);

}  // namespace zs::state

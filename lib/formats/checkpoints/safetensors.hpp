// SPDX-License-Identifier: Apache-2.0
// The state besides weights as one safetensors file: "master.NAME", "exp_avg.NAME" and so on, and in its `__metadata__`
// under "zs_state" a JSON of steps, settings, ties and values.
#pragma once
#include <string>

#include "checkpoints/state.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::checkpoints {

inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

tensorfile::Metadata metadata_of(const State& state);

/// Adds the content of the file. A file of another program, without "zs_state", is a fault. Throws Error if it is
/// damaged.
void add_safetensors(State& into, const std::string& path);

}  // namespace zs::checkpoints

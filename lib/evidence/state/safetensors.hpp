// SPDX-License-Identifier: Apache-2.0
// What a checkpoint has beside weights, as one file of safetensors: "master.NAME", "exp_avg.NAME" and so on, and in its
// `__metadata__` under "zs_state" a JSON of steps, settings, ties and values.
#pragma once
#include <string>

#include "state/state.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::state {

inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

tensorfile::Metadata metadata_of(const State& state);

/// Adds what the file holds. A file of another program, without "zs_state", is a fault. Throws Error where it is
/// damaged.
void add_safetensors(State& into, const std::string& path);

}  // namespace zs::state

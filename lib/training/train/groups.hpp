// SPDX-License-Identifier: Apache-2.0
// The parameter groups of an engine's optimizer, as a recording has them: with PyTorch's names.
#pragma once
#include <nlohmann/json.hpp>

#include "zero/engine.hpp"

namespace zs::train {

/// Each group's options, its class of optimizer and its parameters: [{"lr", ..., "params", "optimizer"}].
nlohmann::ordered_json groups(const zero::Engine& engine, double learning_rate);

/// Parameters by the optimizer's own count of updates: {"5": [names]}; of rules that count.
nlohmann::ordered_json counters(const zero::Engine& engine);

}  // namespace zs::train

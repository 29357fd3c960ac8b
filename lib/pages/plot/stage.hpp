// SPDX-License-Identifier: Apache-2.0
// Describes conditions by their stage instead of their names.
#pragma once
#include <string>
#include <vector>

#include "summary/condition.hpp"

namespace zs::plot {

/// "ZeRO-1 (baseline)", "ZeRO-3 (DeepCompile, offload cpu)", "FSDP". A condition with an unknown stage keeps its name;
/// if descriptions are equal, the name is appended.
std::vector<std::string> stage_names(const std::vector<summary::Condition>& conditions);

/// "learning rate 0.001": what a sweep varied, if the conditions' names only count, sweep_001; else their names.
std::vector<std::string> setting_names(const std::vector<summary::Condition>& conditions);

}  // namespace zs::plot

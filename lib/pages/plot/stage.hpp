// SPDX-License-Identifier: Apache-2.0
// Conditions called by what they are, in place of their names.
#pragma once
#include <string>
#include <vector>

#include "summary/condition.hpp"

namespace zs::plot {

/// "ZeRO-1 (baseline)", "ZeRO-3 (DeepCompile, offload cpu)", "FSDP". A condition whose records do not say its stage
/// keeps its name; of several that are alike, each has its name behind.
std::vector<std::string> stage_names(const std::vector<summary::Condition>& conditions);

}  // namespace zs::plot

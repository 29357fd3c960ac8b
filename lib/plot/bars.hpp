// SPDX-License-Identifier: Apache-2.0
// Panels of bars, for figures of one panel and of several. Each throws Error where no condition has the value.
#pragma once
#include "plot/figures.hpp"

namespace zs::plot {

Panel time_panel(const std::vector<Condition>& conditions, const Options& options);
Panel memory_panel(const std::vector<Condition>& conditions);
/// Final losses, with their range over the runs of a condition.
Panel final_loss_panel(const std::vector<Condition>& conditions);

}  // namespace zs::plot

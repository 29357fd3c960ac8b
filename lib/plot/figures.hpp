// SPDX-License-Identifier: Apache-2.0
// The figures that a summary can give.
#pragma once
#include <string>
#include <vector>

#include "plot/condition.hpp"
#include "plot/figure.hpp"

namespace zs::plot {

/// A curve per condition: the loss by step. Throws Error if no condition has one.
Figure loss_figure(const std::vector<Condition>& conditions);

/// Bars: mean iteration time with its 95 % interval. `warmup` is the summary's note on excluded points, or "".
/// Throws Error if no condition has a time.
Figure time_figure(const std::vector<Condition>& conditions, const std::string& warmup);

/// Bars: the peak memory. Throws Error if no condition has one.
Figure memory_figure(const std::vector<Condition>& conditions);

}  // namespace zs::plot

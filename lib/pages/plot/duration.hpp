// SPDX-License-Identifier: Apache-2.0
// The figure of training durations.
#pragma once
#include "plot/figures.hpp"

namespace zs::plot {

/// Bars: the total time of all steps of a run; for several runs the mean.
Figure duration_figure(const std::vector<Condition>& conditions, const Options& options);

}  // namespace zs::plot

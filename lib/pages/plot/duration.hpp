// SPDX-License-Identifier: Apache-2.0
// The figure of how long trainings took.
#pragma once
#include "plot/figures.hpp"

namespace zs::plot {

/// Bars: the time of all steps of a run, one after another; of several runs the mean.
Figure duration_figure(const std::vector<Condition>& conditions, const Options& options);

}  // namespace zs::plot

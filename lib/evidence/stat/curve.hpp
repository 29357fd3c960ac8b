// SPDX-License-Identifier: Apache-2.0
// The curves of a condition over its steps, for lines with a band.
#pragma once
#include "metric/table.hpp"
#include "stat/condition.hpp"

namespace zs::stat {

/// One row per step that any run of the condition logged, in order. Columns: step, loss (mean over the runs that have
/// the step), loss_min, loss_max, iteration_time (mean), valid_loss (mean), runs, loss_smooth. Points without a step
/// are numbered from 1.
metric::Table curve(const Condition& condition);

}  // namespace zs::stat

// SPDX-License-Identifier: Apache-2.0
// What a summary says about each run, so that reports and figures read it and never compute it again.
#pragma once
#include <vector>

#include "metric/table.hpp"
#include "stat/condition.hpp"

namespace zs::stat {

/// A row per run, condition by condition. Columns: condition, run, status, reason, points, replaced_points, final_loss,
/// peak_mem, time_given, warmup_points (of these left out at the start), time_outliers (of the rest), time_removed (of
/// these left out), time_points, time_mean, time_median, time_min and time_max. What is left are the times from
/// time_min to time_max after the warm-up: the rules leave out at the ends alone.
metric::Table run_table(const std::vector<Condition>& conditions);

}  // namespace zs::stat

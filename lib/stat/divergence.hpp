// SPDX-License-Identifier: Apache-2.0
// Where the loss curves of two conditions part, and whether repeated runs of one condition part as much.
#pragma once
#include "metric/table.hpp"
#include "stat/condition.hpp"

namespace zs::stat {

/// The largest distance between runs of the condition at one step; metric::absent_real() with fewer than two runs at
/// every step, nan where a loss is.
double spread(const metric::Table& curve);

/// A row for each pair of conditions; for more than kMostPaired conditions, for each with the first. Columns:
/// condition, baseline, steps (compared), steps_missing (that one of the two lacks), first_difference (step),
/// loss_difference (the largest; nan where a loss is), difference_step, final_difference, envelope (the larger spread()
/// of the two), first_outside (step where the difference first exceeds it), digest (same, different or ""), verdict.
/// differs_in ("loss, rank 1": what the runs themselves differ in first).
/// Verdicts: "identical": compare/verdict.hpp calls every run of both exact (or equal as printed) to every other, in
/// all that training decides, on all ranks; "incomplete": so far as both have values, but one lacks some; "inside": the
/// mean losses differ no more than the envelope, which is not 0; "different"; "nothing to compare". A nan is a
/// difference, also beside another nan. REQUIRES: `curves` has the curve() of each condition.
metric::Table divergence(const std::vector<Condition>& conditions, const std::map<std::string, metric::Table>& curves);

inline constexpr std::size_t kMostPaired = 16;

}  // namespace zs::stat

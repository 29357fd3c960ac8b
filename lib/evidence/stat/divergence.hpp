// SPDX-License-Identifier: Apache-2.0
// Finds where the loss curves of two conditions diverge, and whether repeated runs of one condition diverge as much.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/verdict.hpp"
#include "metric/table.hpp"
#include "stat/condition.hpp"

namespace zs::stat {

/// Losses of a curve() by step: {number of earlier occurrences of the step, in other epochs; the step}. Steps without a
/// loss are left out.
using LossBySteps = std::map<std::pair<std::int64_t, std::int64_t>, double>;
LossBySteps losses_by_steps(const metric::Table& curve);

/// The differences of two curves at their common steps; absent if there are none. Every table, figure or sentence that
/// calls curves equal uses this: one unit in the last place is a difference, and so are a nan, even on both sides, and
/// zeros of different sign.
struct CurvesApart {
  std::int64_t steps = 0, missing = 0;  ///< common to both; in only one of them
  std::int64_t first = metric::kAbsentInteger, largest_at = metric::kAbsentInteger;
  double largest = metric::absent_real(), final = metric::absent_real();
};
CurvesApart curves_apart(const LossBySteps& one, const LossBySteps& other);

/// The difference of the runs themselves, in every value that the training determines, on every rank and in every
/// attempt: curves are only means of the lowest ranks.
struct RunsApart {
  compare::Settled verdict{};
  std::int64_t step = metric::kAbsentInteger;  ///< of the first difference, or of a value that is not finite
  std::string what{};                          ///< "loss", "loss, rank 1", "grad_norm, attempt 2"

  /// A loss of a run differs, even if the means do not.
  bool in_loss() const { return what.starts_with("loss"); }
};
/// Compares each run with the first: the worst result; nothing for fewer than two.
std::optional<RunsApart> runs_apart(const std::vector<const metric::Run*>& runs);

/// The largest distance between runs of the condition at one step; metric::absent_real() with fewer than two runs at
/// every step, nan if a loss is nan.
double spread(const metric::Table& curve);

/// A row for each pair of conditions; for more than kMostPaired conditions, for each with the first. Columns:
/// condition, baseline, steps (compared), steps_missing (in one of the two), first_difference (step), loss_difference
/// (the largest; nan if a loss is), difference_step, final_difference, envelope (the larger spread() of the two),
/// first_outside, outside_difference, outside_spread (leaves() of stat/repeats.hpp: from where the difference is more
/// than chance), digest (same, different or ""), verdict, differs_in ("loss, rank 1": the first difference of the runs
/// themselves). Verdicts: "identical": compare/verdict.hpp calls every run of both exact (or equal as printed) to every
/// other, in all that training determines, on all ranks; "incomplete": equal as far as both have values, but one lacks
/// some; "inside": repeated runs differ, and the two no more than by chance; "different"; "nothing to compare". A nan
/// is a difference, even on both sides. REQUIRES: `curves` has the curve() of each condition.
metric::Table divergence(const std::vector<Condition>& conditions, const std::map<std::string, metric::Table>& curves);

inline constexpr std::size_t kMostPaired = 16;

}  // namespace zs::stat

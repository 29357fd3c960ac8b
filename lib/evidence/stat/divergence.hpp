// SPDX-License-Identifier: Apache-2.0
// Where the loss curves of two conditions part, and whether repeated runs of one condition part as much.
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

/// Losses of a curve() by step: {how often the step came before, in another epoch; the step}. Steps without a loss have
/// none.
using LossBySteps = std::map<std::pair<std::int64_t, std::int64_t>, double>;
LossBySteps losses_by_steps(const metric::Table& curve);

/// What two curves show at the steps that both have; absent where there is nothing of the kind. Whoever says that
/// curves are equal, in a table, a picture or a sentence, asks here: one unit in the last place is a difference, and so
/// are a nan, also beside another nan, and zeros of two signs.
struct CurvesApart {
  std::int64_t steps = 0, missing = 0;  ///< that both have; that one alone has
  std::int64_t first = metric::kAbsentInteger, largest_at = metric::kAbsentInteger, outside = metric::kAbsentInteger;
  double largest = metric::absent_real(), final = metric::absent_real();
};
CurvesApart curves_apart(const LossBySteps& one, const LossBySteps& other, double envelope = metric::absent_real());

/// What runs themselves say, in every value that training decides, on every rank and in every attempt: curves are means
/// of the lowest ranks.
struct RunsApart {
  compare::Settled verdict{};
  std::int64_t step = metric::kAbsentInteger;  ///< where they first differ, or where a value is not finite
  std::string what{};                          ///< "loss", "loss, rank 1", "grad_norm, attempt 2"

  /// A loss of a run differs, also where the means do not.
  bool in_loss() const { return what.starts_with("loss"); }
};
/// Each of the runs beside the first one: the worst of it; nothing of fewer than two.
std::optional<RunsApart> runs_apart(const std::vector<const metric::Run*>& runs);

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

// SPDX-License-Identifier: Apache-2.0
// Whether the losses of two conditions differ by more than chance makes of repeated runs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stat/condition.hpp"

namespace zs::stat {

/// A loss of a run, by its epoch and step (or by its number, if it has no step). In order.
using RunLosses = std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, double>>;

/// The losses of the runs of a condition.
struct Repeats {
  explicit Repeats(const Condition& condition);

  std::vector<RunLosses> runs{};
  std::vector<std::string> seeds{};  ///< of each run; "" where a run has none
  double rounding = 0;               ///< half a unit of the last printed digit, the coarsest of the runs; 0: every bit
};

/// The first tenth of the common steps in which two conditions differ by more than chance.
struct Leaves {
  std::int64_t step;  ///< the first where the mean losses differ in it
  double difference;  ///< of the mean losses in it; nan if a loss is not finite
  double spread;      ///< the largest distance of repeated runs of one condition in this tenth or a later one
};

/// Tests the mean losses of each tenth of the steps that all runs of both have, by Welch's test over the runs and, if
/// both have the same seeds, by Student's of the pairs with equal seeds, at 5 % for all tenths and `tests` such
/// comparisons together (Bonferroni). The variance is the largest of this tenth and the later ones: an early difference
/// that repeated runs reach later is noise that grows. It is at least that of the print. A loss that is not finite is a
/// difference, and so are runs without a common step (then all is absent). REQUIRES: one of the two has several runs.
std::optional<Leaves> leaves(const Repeats& one, const Repeats& other, std::size_t tests);

}  // namespace zs::stat

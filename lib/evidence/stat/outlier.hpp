// SPDX-License-Identifier: Apache-2.0
// Runs that are not like the others of their kind: slower, with a higher loss, a lower throughput, more memory.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "stat/condition.hpp"

namespace zs::stat {

/// Of fewer like runs nobody knows what is usual.
inline constexpr std::size_t kFewestAlike = 10;
/// Of so many groups of healthy runs one may have a run outside of its fence.
inline constexpr double kGroupsForOneFalse = 10'000;

/// Between low and high lies what is usual.
struct Fence {
  double median, low, high;  ///< nan with fewer than kFewestAlike values

  bool outside(double value) const { return value < low || value > high; }
};

/// median -+ q 1.4826 MAD, but at least `least` of the median away. The bound of the modified z-score (Iglewicz and
/// Hoaglin, 1993: |x - median| / (1.4826 MAD) > 3.5) is made such that a group, not a value, is healthy: q is Student's
/// quantile at 1 - a / 2n with a = 1 / kGroupsForOneFalse, for all n values at once (Bonferroni), and of 0.37 (n - 1)
/// degrees of freedom, since the MAD has 37 % of the efficiency of the standard deviation (Rousseeuw and Croux, 1993).
Fence fence(const Sample& values, double least);

/// A row for each run and quantity outside of the fence of its group (alike()), worse ones first: quantity ("time",
/// "loss", "throughput", "memory"), condition, run, unit (of the next four), value, median, low, high, change (relative
/// to the median), alike (how many of the group are within the fence). Runs that failed are in no group. Time is the
/// mean of a run's iteration times after its warm-up, loss the mean over the last tenth of its losses, throughput its
/// tokens, images or samples in a second, memory its peak. At least 5 % apart are times and throughputs, 1 % losses and
/// memories. A throughput that follows from a time that is named is not named again.
metric::Table outliers(const std::vector<Condition>& conditions);

/// The rows of the table in words, those together that are outside of one fence on one side: "ref_070 to ref_074: 30 %
/// slower than 195 like them". None where there is no such table.
std::vector<std::string> outlier_sentences(const metric::Store& store);

}  // namespace zs::stat

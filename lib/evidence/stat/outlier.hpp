// SPDX-License-Identifier: Apache-2.0
// Outliers among similar runs: slower, with a higher loss, a lower throughput, more memory.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "stat/condition.hpp"

namespace zs::stat {

/// With fewer similar runs the usual range is unknown.
inline constexpr std::size_t kFewestAlike = 10;
/// The number of healthy groups among which one is expected to have a run outside its fence.
inline constexpr double kGroupsForOneFalse = 10'000;

/// The usual range is from low to high.
struct Fence {
  double median, low, high;  ///< nan with fewer than kFewestAlike values

  bool outside(double value) const { return value < low || value > high; }
};

/// median -+ q 1.4826 MAD, but at least the share `least` of the median away. The modified z-score (Iglewicz and
/// Hoaglin, 1993) bounds one value: |x - median| / (1.4826 MAD) > 3.5. Here the bound holds for a whole group: q is
/// Student's quantile at 1 - a / 2n with a = 1 / kGroupsForOneFalse, for all n values at once (Bonferroni), with 0.37
/// (n - 1) degrees of freedom, since the MAD has 37 % of the standard deviation's efficiency (Rousseeuw and Croux,
/// 1993).
Fence fence(const Sample& values, double least);

/// A row for each run and quantity outside the fence of its group (alike()), worst first: quantity ("time", "loss",
/// "throughput", "memory"), condition, run, unit (of the next four), value, median, low, high, change (relative to the
/// median), alike (how many of the group are within the fence). Failed runs are in no group. Time is the mean of a
/// run's iteration times after its warm-up, loss the mean over the last tenth of its losses, throughput its tokens,
/// images or samples per second, memory its peak. Times and throughputs must differ by 5 %, losses and memories by 1 %.
/// A throughput that follows from a listed time is not listed.
metric::Table outliers(const std::vector<Condition>& conditions);

/// The rows of the table in words; runs outside one fence on the same side are joined: "ref_070 to ref_074: 30 % slower
/// than the 195 runs like them". None without such a table.
std::vector<std::string> outlier_sentences(const metric::Store& store);

}  // namespace zs::stat

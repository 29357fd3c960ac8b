// SPDX-License-Identifier: Apache-2.0
// How many times as long, or as large: the ratio of two revisions, over repeated runs of each.
#pragma once
#include <cstddef>
#include <vector>

#include "stat/sample.hpp"
#include "summary/condition.hpp"

namespace zs::summary {

struct Ratio {
  double value;        ///< of the other to the baseline, a mean of logarithms; nan where either is empty
  double low, high;    ///< interval; nan with fewer than two runs on either side
  double p;            ///< of the hypothesis that there is no difference, two-sided; nan likewise
  double smallest;     ///< the least relative change that so many runs find in four cases of five; nan likewise
  double confidence;   ///< of the interval
  bool exact = false;  ///< no run of either differs from the others: nothing is left to chance

  bool known() const { return low == low; }
  /// So few runs find only what everybody would see.
  bool too_few() const { return smallest > 0.5; }
  /// The interval leaves out 1.
  bool differs() const { return low > 1 || high < 1; }
};

/// One value per run. Paired: the kth of the one ran beside the kth of the other, so that what changed slowly on the
/// machine changed for both. REQUIRES: as many of both then.
struct Samples {
  stat::Sample baseline, other;
  bool paired = false;
};

/// All values must be above 0, else all of it is nan. Without pairs Welch's interval, on logarithms. With pairs that of
/// the trimmed mean of their logarithms' differences (Tukey and McLaughlin 1963): of six pairs or more, a fifth at
/// either end count as the next ones, so that a burst of other work on the machine costs the pair it fell on, not the
/// comparison.
Ratio ratio(const Samples& samples, double confidence = 0.95);

/// Several ratios of one comparison, each made by ratio() at the confidence that Holm's procedure gives it, so that the
/// chance that any interval misses is 5 %: the one with the smallest p the widest interval.
std::vector<Ratio> holm(const std::vector<Samples>& all);

/// Time and memory of one condition over those of another.
struct Ratios {
  Ratio time, memory;
  std::size_t pairs = 0;  ///< runs that ran beside each other; 0: the ratios are not of pairs
  bool has_memory = true;
};

/// Over the runs' mean times and peaks. Runs are pairs where their attribute "run" says so: the kth of the one ran
/// beside the kth of the other.
Ratios ratios(const Condition& baseline, const Condition& other);

}  // namespace zs::summary

// SPDX-License-Identifier: Apache-2.0
// How many times as long, or as large: the ratio of two revisions' means, over repeated runs of each.
#pragma once
#include <cstddef>
#include <vector>

#include "stat/sample.hpp"

namespace zs::report {

struct Ratio {
  double value;       ///< geometric mean of the other over that of the baseline; nan where either is empty
  double low, high;   ///< interval; nan with fewer than two runs on either side
  double p;           ///< of the hypothesis that there is no difference, two-sided (Welch, on logarithms); nan likewise
  double smallest;    ///< the least relative change that so many runs find in four cases of five; nan likewise
  double confidence;  ///< of the interval
  bool exact = false;  ///< no run of either differs from the others: nothing is left to chance

  bool known() const { return low == low; }
  /// The interval leaves out 1.
  bool differs() const { return low > 1 || high < 1; }
};

/// Over one value per run, all above 0; else all of it is nan.
Ratio ratio(const stat::Sample& baseline, const stat::Sample& other, double confidence = 0.95);

/// Several ratios of one comparison, each made by ratio() at the confidence that Holm's procedure gives it, so that the
/// chance that any interval misses is 5 %: the one with the smallest p the widest interval.
struct Samples {
  stat::Sample baseline, other;
};
std::vector<Ratio> holm(const std::vector<Samples>& all);

}  // namespace zs::report

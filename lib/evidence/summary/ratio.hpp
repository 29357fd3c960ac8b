// SPDX-License-Identifier: Apache-2.0
// The ratio of times or sizes of two revisions, over repeated runs of each.
#pragma once
#include <cstddef>
#include <vector>

#include "stat/sample.hpp"
#include "summary/condition.hpp"

namespace zs::summary {

struct Ratio {
  double value;        ///< of the other to the baseline, a mean of logarithms; nan if either is empty
  double low, high;    ///< confidence interval; nan with fewer than two runs on either side
  double p;            ///< of the hypothesis of no difference, two-sided; nan likewise
  double smallest;     ///< the smallest relative change found with probability 4/5; nan likewise
  double confidence;   ///< of the interval
  std::size_t runs;    ///< of the side that has fewer
  bool exact = false;  ///< all runs of each side are equal: the noise is 0, or hidden by the print
  double coarse = 0;   ///< one unit of the last printed digit, of the baseline, if it hides the spread; else 0

  static constexpr std::size_t kUsualRuns = 6;

  bool known() const { return low == low; }
  /// Fewer runs than usual: they detect only obvious changes.
  bool too_few() const { return runs < kUsualRuns && smallest > 0.5; }
  /// The interval excludes 1.
  bool differs() const { return low > 1 || high < 1; }
};

/// One value per run. Paired: the kth runs of both ran next to each other, so that slow changes of the machine affect
/// both. REQUIRES: then both have the same number.
struct Samples {
  stat::Sample baseline, other;
  bool paired = false;
  double unit = 0;      ///< of the last printed digit; 0 if the values are exact
  double rounding = 0;  ///< standard deviation that the print gives to the value of a run
};

/// All values must be positive; otherwise the result is nan. Unpaired: Welch's interval, on logarithms. Paired: the
/// interval of the trimmed mean of the differences of logarithms (Tukey and McLaughlin 1963): with six pairs or more, a
/// fifth at either end is replaced by the next value. A burst of other work on the machine then affects only its pair.
/// The deviation of the values is at least that of their rounding. Where all values of each side are equal, the print
/// may hide their noise: they differ if they are more than one unit apart, and the interval is half a unit wider on
/// each side.
Ratio ratio(const Samples& samples, double confidence = 0.95);

/// Several ratios of one comparison, each by ratio() at the confidence level of Holm's procedure, so that the
/// probability that any interval misses is 5 %: the one with the smallest p has the widest interval.
std::vector<Ratio> holm(const std::vector<Samples>& samples);

/// Time and memory of one condition divided by those of another condition.
struct Ratios {
  Ratio time, memory;
  std::size_t pairs = 0;  ///< runs that ran next to each other; 0: unpaired
  bool has_memory = true;
};

/// Ratios of the runs' mean times and peaks. Runs are paired by their attribute "run", if they have it: the kth runs of
/// both ran next to each other. Of several logs of one run the largest value counts: a step lasts as long as on the
/// slowest rank. A printed time is rounded with a deviation of one unit of the last digit over root 12. The mean of a
/// run has that of one step, or, if its steps vary by more than the print (their quartiles differ), that over root n.
Ratios ratios(const Condition& baseline, const Condition& other);

}  // namespace zs::summary

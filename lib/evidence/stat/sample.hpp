// SPDX-License-Identifier: Apache-2.0
// Statistics of a sample of numbers. Pure functions: values in any order, nan if the sample is too small.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace zs::stat {

using Sample = std::vector<double>;

struct Interval {
  double low, high;
};

/// Compensated (Neumaier) sum over the size, nearly independent of the order of values; exact for equal values.
double mean(const Sample& values);

/// The smallest value, nan only if all are nan or there is none. greatest() likewise.
double least(const Sample& values);
double greatest(const Sample& values);

/// Standard deviation: of a sample (divided by n - 1; nan below two values), or of a population (by n).
enum class Deviation { sample, population };
double deviation(const Sample& values, Deviation kind = Deviation::sample);

/// The quantile at `share` in [0, 1], linear between order statistics (type 7, as R, numpy and Excel have it).
double quantile(Sample values, double share);
double median(const Sample& values);

/// Median distance from the median, times 1.4826: estimates the standard deviation of normal data.
double mad(const Sample& values);

/// Student's interval of the mean: mean -+ t(confidence, n - 1) s / sqrt(n); nan below two values.
Interval mean_interval(const Sample& values, double confidence = 0.95);

/// A difference of two means: the estimate, its standard error, and the error's degrees of freedom.
struct Estimate {
  double change, error, freedom;

  /// The two-sided probability of a change at least as large by chance alone.
  double p() const;
};

/// A sample by its moments; `variance`: of one value, divided by n - 1.
struct Moments {
  double mean, variance;
  std::size_t count;
};
Moments moments(const Sample& values);

/// Welch's test of b's mean against a's. A side of one value has the variance of the other. REQUIRES: one has two
/// values.
Estimate welch(const Moments& a, const Moments& b);

/// Percentile bootstrap interval of `statistic`, with a generator that is reproducible for a seed on every machine. One
/// group: resamples its values. Several groups (runs): resamples whole groups, since values within one are not
/// independent. 2000 rounds, fewer (never below 100) for very large samples. nan below two values or groups.
Interval bootstrap(const std::vector<Sample>& groups, const std::function<double(Sample&)>& statistic,
                   std::uint64_t seed, double confidence = 0.95);

/// median(), faster; may reorder the values. REQUIRES: no nan.
double median_in_place(Sample& values);

/// The number of leading values to leave out by the MSER rule (White 1997): the d <= n / 2 that minimises sum((x -
/// mean)^2) / (n - d)^2 over the rest. That is where a slow start ends.
std::size_t warmup_length(const Sample& values);

/// Marks values further than 3.5 mad() from the median (Iglewicz and Hoaglin). Without any spread, values that differ
/// from the median by more than one part in a million.
std::vector<bool> far_out(const Sample& values);

}  // namespace zs::stat

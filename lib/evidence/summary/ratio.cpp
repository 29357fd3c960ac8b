// SPDX-License-Identifier: Apache-2.0
#include "summary/ratio.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>

#include "base/number.hpp"
#include "compare/precision.hpp"

namespace zs::summary {
namespace {

using stat::Estimate;

constexpr double kPower = 0.8;
/// One in kTrimmed pairs at either end is trimmed, the usual share, if enough remain to estimate their spread.
constexpr std::size_t kTrimmed = 5, kFewestToTrim = 6;

stat::Sample logarithms(const stat::Sample& values) {
  stat::Sample result;
  for (const double value : values) result.push_back(value > 0 ? std::log(value) : kNan);
  return result;
}

bool equal(const stat::Sample& values) { return std::equal(values.begin() + 1, values.end(), values.begin()); }

/// Of b's logarithms against a's. The deviation is at least `a_rounding`, `b_rounding`.
Estimate welch(const stat::Sample& a, const stat::Sample& b, double a_rounding, double b_rounding) {
  stat::Moments of_a = stat::moments(a), of_b = stat::moments(b);
  of_a.variance = std::max(of_a.variance, a_rounding * a_rounding);
  of_b.variance = std::max(of_b.variance, b_rounding * b_rounding);
  return stat::welch(of_a, of_b);
}

/// `trimmed` values at either end count as the next ones.
Estimate of_pairs(stat::Sample differences, std::size_t trimmed) {
  std::ranges::sort(differences);
  const auto count = static_cast<double>(differences.size());
  const auto left = static_cast<double>(differences.size() - 2 * trimmed);
  const auto first = differences.begin() + static_cast<std::ptrdiff_t>(trimmed);
  const auto last = differences.end() - static_cast<std::ptrdiff_t>(trimmed);
  const double change = stat::mean({first, last});
  std::fill(differences.begin(), first, *first);
  std::fill(last, differences.end(), *(last - 1));
  const double error = stat::deviation(differences) * std::sqrt((count - 1) / (left * (left - 1)));
  return {change, error, left - 1};
}

/// The deviation of the differences is at least `rounding`.
Estimate of_pairs(const stat::Sample& a, const stat::Sample& b, double rounding) {
  stat::Sample differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(b[i] - a[i]);
  const std::size_t trimmed = a.size() < kFewestToTrim ? 0 : a.size() / kTrimmed;
  Estimate made = of_pairs(differences, trimmed);
  // Times that were logged with few digits may leave no spread between the ends.
  if (!(made.error > 0)) made = of_pairs(differences, 0);
  made.error = std::max(made.error, rounding / std::sqrt(static_cast<double>(a.size())));
  return made;
}

/// One unit of the last digit of printed times; 0 if they have all their digits.
double unit_of_times(const Condition& baseline, const Condition& other) {
  std::vector<std::string> texts;
  for (const Condition* const condition : {&baseline, &other}) {
    for (const Member& member : condition->members) {
      for (const stat::Point& point : member.series().points) {
        if (std::isfinite(point.time)) texts.push_back(to_text(point.time));
      }
    }
  }
  const compare::Precision precision = compare::precision_of(texts);
  return texts.empty() || precision.every_bit ? 0 : std::pow(10, -precision.decimals);
}

/// One unit of the last digit of sizes that were printed in GB with one or two decimals; 0 for others. Records have
/// bytes.
double unit_of_sizes(const stat::Sample& bytes) {
  for (const double digits : {10.0, 100.0}) {
    for (const double gigabyte : {0x1p30, 1e9}) {
      const double unit = gigabyte / digits;
      if (std::ranges::all_of(bytes, [&](double value) {
            return std::abs(value - std::round(value / unit) * unit) <= 0.5;  // rounded to a byte
          }))
        return unit;
    }
  }
  return 0;
}

/// The rounding error of a run's mean: if its steps vary by more than the print, their roundings average out.
double rounding(const Member& member, double unit) {
  stat::Sample seconds;
  for (const stat::Point& point : member.series().points) {
    if (point.timed) seconds.push_back(point.time);
  }
  const bool vary = stat::quantile(seconds, 0.25) < stat::quantile(seconds, 0.75);
  return unit / std::sqrt(12 * static_cast<double>(vary ? seconds.size() : 1));
}

/// The values of paired runs, or of all runs if the records do not show pairs. Of the logs of one run the largest
/// counts.
Samples samples(const Condition& baseline, const Condition& other, Member::Column column) {
  using Key = std::pair<std::string, std::size_t>;
  const auto by_run = [&](const Condition& condition) {
    std::map<Key, double> values;
    for (std::size_t i = 0; i < condition.members.size(); ++i) {
      const Member& member = condition.members[i];
      const double value = member[column].value_or(kNan);
      if (!std::isfinite(value)) continue;
      const std::string run = member.run->attribute("run");
      const auto entry = values.emplace(Key{run, run.empty() ? i : 0}, value).first;
      entry->second = std::max(entry->second, value);
    }
    return values;
  };
  const std::map<Key, double> a = by_run(baseline), b = by_run(other);
  const auto unnamed = [](const auto& values) { return !values.empty() && values.begin()->first.first.empty(); };
  Samples made;
  made.paired = a.size() > 1 && !unnamed(a) && !unnamed(b);
  for (const auto& [run, of_a] : a) {
    if (const auto of_b = b.find(run); of_b != b.end())
      made.baseline.push_back(of_a), made.other.push_back(of_b->second);
  }
  if (made.paired && made.baseline.size() > 1) return made;
  made = {};
  for (const auto& [run, value] : a) made.baseline.push_back(value);
  for (const auto& [run, value] : b) made.other.push_back(value);
  return made;
}

Samples times(const Condition& baseline, const Condition& other) {
  Samples made = samples(baseline, other, "time_mean");
  made.unit = unit_of_times(baseline, other);
  stat::Sample squares;
  for (const Condition* const condition : {&baseline, &other}) {
    for (const Member& member : condition->members) {
      if (member["time_mean"] > 0) squares.push_back(std::pow(rounding(member, made.unit), 2));
    }
  }
  if (!squares.empty()) made.rounding = std::sqrt(stat::mean(squares));
  return made;
}

Samples sizes(const Condition& baseline, const Condition& other) {
  Samples made = samples(baseline, other, "peak_mem");
  stat::Sample bytes = made.baseline;
  bytes.insert(bytes.end(), made.other.begin(), made.other.end());
  made.unit = unit_of_sizes(bytes);
  made.rounding = made.unit / std::sqrt(12);
  return made;
}

}  // namespace

Ratio ratio(const Samples& samples, double confidence) {
  const stat::Sample &baseline = samples.baseline, &other = samples.other;
  Ratio made{kNan, kNan, kNan, kNan, kNan, confidence, std::min(baseline.size(), other.size())};
  if (made.runs == 0) return made;
  const stat::Sample a = logarithms(baseline), b = logarithms(other);
  made.value = std::exp(stat::mean(b) - stat::mean(a));
  if (made.runs < 2 || !std::isfinite(made.value)) return made;
  const double unit = samples.unit / stat::mean(baseline);
  if (equal(baseline) && equal(other)) {
    made.exact = true;
    made.value = other[0] / baseline[0];
    made.smallest = 2 * unit;
    if (made.value != 1) made.coarse = unit;
    const double half = made.value == 1 ? 0 : 0.5005 * samples.unit;  // decimal fractions are not exact
    made.low = (other[0] - half) / (baseline[0] + half);
    made.high = (other[0] + half) / (baseline[0] - half);
    made.p = made.differs() ? 0 : 1;
    return made;
  }
  const double of_a = samples.rounding / stat::mean(baseline), of_b = samples.rounding / stat::mean(other);
  const auto estimate = [&](double least_a, double least_b) {
    return samples.paired ? of_pairs(a, b, std::sqrt(least_a * least_a + least_b * least_b))
                          : welch(a, b, least_a, least_b);
  };
  const Estimate found = estimate(of_a, of_b);
  if (found.error > estimate(0, 0).error) made.coarse = unit;
  made.value = std::exp(found.change);
  made.p = found.p();
  if (!(found.error > 0)) {  // every pair differs by the same: as certain as pairs can be
    made.low = made.high = made.value;
    made.smallest = 0;
    return made;
  }
  const boost::math::students_t student(found.freedom);
  const double reach = boost::math::quantile(student, 0.5 + confidence / 2) * found.error;
  made.low = std::exp(found.change - reach);
  made.high = std::exp(found.change + reach);
  made.smallest = std::exp(reach + boost::math::quantile(student, kPower) * found.error) - 1;
  return made;
}

std::vector<Ratio> holm(const std::vector<Samples>& samples) {
  std::vector<Ratio> made;
  made.reserve(samples.size());
  for (const Samples& one : samples) made.push_back(ratio(one));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i].known()) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return made[a].p < made[b].p; });
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    made[order[rank]] = ratio(samples[order[rank]], 1 - 0.05 / static_cast<double>(order.size() - rank));
  return made;
}

Ratios ratios(const Condition& baseline, const Condition& other) {
  const Samples seconds = times(baseline, other), peaks = sizes(baseline, other);
  const std::vector<Ratio> made = holm({seconds, peaks});
  return {made[0], made[1], seconds.paired ? seconds.baseline.size() : 0,
          !peaks.baseline.empty() || !peaks.other.empty()};
}

}  // namespace zs::summary

// SPDX-License-Identifier: Apache-2.0
#include "summary/ratio.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>

#include "base/number.hpp"

namespace zs::summary {
namespace {

constexpr double kPower = 0.8;
/// One in kTrimmed pairs at either end is trimmed, the usual share, if enough remain to estimate their spread.
constexpr std::size_t kTrimmed = 5, kFewestToTrim = 6;

/// A difference of logarithms: its estimate, standard error, and the degrees of freedom of the error.
struct Estimate {
  double change, error, freedom;
};

stat::Sample logarithms(const stat::Sample& values) {
  stat::Sample result;
  for (const double value : values) result.push_back(value > 0 ? std::log(value) : kNan);
  return result;
}

bool equal(const stat::Sample& values) { return std::equal(values.begin() + 1, values.end(), values.begin()); }

Estimate welch(const stat::Sample& a, const stat::Sample& b) {
  const double of_a = std::pow(stat::deviation(a), 2) / static_cast<double>(a.size());
  const double of_b = std::pow(stat::deviation(b), 2) / static_cast<double>(b.size());
  const double freedom = std::pow(of_a + of_b, 2) / (of_a * of_a / static_cast<double>(a.size() - 1) +
                                                     of_b * of_b / static_cast<double>(b.size() - 1));
  return {stat::mean(b) - stat::mean(a), std::sqrt(of_a + of_b), freedom};
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

Estimate of_pairs(const stat::Sample& a, const stat::Sample& b) {
  stat::Sample differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(b[i] - a[i]);
  const std::size_t trimmed = a.size() < kFewestToTrim ? 0 : a.size() / kTrimmed;
  const Estimate made = of_pairs(differences, trimmed);
  // Times that were logged with few digits may leave no spread between the ends.
  return made.error > 0 ? made : of_pairs(differences, 0);
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

}  // namespace

Ratio ratio(const Samples& samples, double confidence) {
  const auto& [baseline, other, paired] = samples;
  Ratio made{kNan, kNan, kNan, kNan, kNan, confidence, std::min(baseline.size(), other.size())};
  if (made.runs == 0) return made;
  const stat::Sample a = logarithms(baseline), b = logarithms(other);
  made.value = std::exp(stat::mean(b) - stat::mean(a));
  if (made.runs < 2 || !std::isfinite(made.value)) return made;
  if (equal(baseline) && equal(other)) {
    made.exact = true;
    made.value = other[0] / baseline[0];
    made.low = made.high = made.value;
    made.p = baseline[0] == other[0] ? 1 : 0;
    made.smallest = 0;
    return made;
  }
  const Estimate found = paired ? of_pairs(a, b) : welch(a, b);
  made.value = std::exp(found.change);
  if (!(found.error > 0)) {  // every pair differs by the same: as certain as pairs can be
    made.low = made.high = made.value;
    made.p = found.change == 0 ? 1 : 0;
    made.smallest = 0;
    return made;
  }
  const boost::math::students_t student(found.freedom);
  const double reach = boost::math::quantile(student, 0.5 + confidence / 2) * found.error;
  made.low = std::exp(found.change - reach);
  made.high = std::exp(found.change + reach);
  made.p = 2 * boost::math::cdf(boost::math::complement(student, std::abs(found.change) / found.error));
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
  const Samples times = samples(baseline, other, "time_mean"), peaks = samples(baseline, other, "peak_mem");
  const std::vector<Ratio> made = holm({times, peaks});
  return {made[0], made[1], times.paired ? times.baseline.size() : 0, !peaks.baseline.empty() || !peaks.other.empty()};
}

}  // namespace zs::summary

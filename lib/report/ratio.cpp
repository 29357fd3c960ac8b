// SPDX-License-Identifier: Apache-2.0
#include "report/ratio.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace zs::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPower = 0.8;

stat::Sample logarithms(const stat::Sample& values) {
  stat::Sample result;
  for (const double value : values) result.push_back(value > 0 ? std::log(value) : kNan);
  return result;
}

}  // namespace

Ratio ratio(const stat::Sample& baseline, const stat::Sample& other, double confidence) {
  Ratio made{kNan, kNan, kNan, kNan, kNan, confidence};
  if (baseline.empty() || other.empty()) return made;
  const stat::Sample a = logarithms(baseline), b = logarithms(other);
  const double change = stat::mean(b) - stat::mean(a);
  made.value = std::exp(change);
  if (a.size() < 2 || b.size() < 2 || !std::isfinite(change)) return made;
  const double of_a = std::pow(stat::deviation(a), 2) / static_cast<double>(a.size());
  const double of_b = std::pow(stat::deviation(b), 2) / static_cast<double>(b.size());
  const double error = std::sqrt(of_a + of_b);
  const auto same = [](const stat::Sample& values) {
    return std::equal(values.begin() + 1, values.end(), values.begin());
  };
  if (same(baseline) && same(other)) {
    made.exact = true;
    made.value = other[0] / baseline[0];
    made.low = made.high = made.value;
    made.p = baseline[0] == other[0] ? 1 : 0;
    made.smallest = 0;
    return made;
  }
  const double freedom = std::pow(of_a + of_b, 2) / (of_a * of_a / static_cast<double>(a.size() - 1) +
                                                     of_b * of_b / static_cast<double>(b.size() - 1));
  const boost::math::students_t student(freedom);
  const double reach = boost::math::quantile(student, 0.5 + confidence / 2) * error;
  made.low = std::exp(change - reach);
  made.high = std::exp(change + reach);
  made.p = 2 * boost::math::cdf(boost::math::complement(student, std::abs(change) / error));
  made.smallest = std::exp(reach + boost::math::quantile(student, kPower) * error) - 1;
  return made;
}

std::vector<Ratio> holm(const std::vector<Samples>& all) {
  std::vector<Ratio> made;
  for (const Samples& one : all) made.push_back(ratio(one.baseline, one.other));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i].known() && !made[i].exact) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return made[a].p < made[b].p; });
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const Samples& one = all[order[rank]];
    made[order[rank]] = ratio(one.baseline, one.other, 1 - 0.05 / static_cast<double>(order.size() - rank));
  }
  return made;
}

}  // namespace zs::report

// SPDX-License-Identifier: Apache-2.0
#include "stat/sample.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "base/number.hpp"

namespace zs::stat {
namespace {

constexpr std::size_t kMostRounds = 2000, kFewestRounds = 100, kBootstrapWork = 5'000'000;

double sum(const Sample& values) {
  double total = 0, lost = 0;
  for (const double value : values) {
    const double next = total + value;
    lost += std::fabs(total) >= std::fabs(value) ? (total - next) + value : (value - next) + total;
    total = next;
  }
  return std::isfinite(total) ? total + lost : total;  // an infinite sum has no remainder
}

double squares(const Sample& values, double centre) {
  Sample terms;
  for (const double value : values) terms.push_back((value - centre) * (value - centre));
  return sum(terms);
}

/// The quantile of values already in order.
double ordered_quantile(const Sample& values, double share) {
  if (values.empty()) return kNan;
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double part = place - static_cast<double>(below);
  if (part == 0) return values[below];
  return values[below] + part * (values[below + 1] - values[below]);
}

bool has_nan(const Sample& values) {
  return std::ranges::any_of(values, [](double value) { return std::isnan(value); });
}

}  // namespace

double mean(const Sample& values) {
  if (values.empty()) return kNan;
  // A sum rounds, and what is the same everywhere must stay what it is: bits are compared by it.
  if (std::equal(values.begin() + 1, values.end(), values.begin())) return values.front();
  return sum(values) / static_cast<double>(values.size());
}

double least(const Sample& values) {
  double found = kNan;
  for (const double value : values) found = std::isnan(found) || value < found ? value : found;
  return found;
}

double greatest(const Sample& values) {
  double found = kNan;
  for (const double value : values) found = std::isnan(found) || value > found ? value : found;
  return found;
}

double deviation(const Sample& values, Deviation kind) {
  const std::size_t divisor = kind == Deviation::population ? values.size() : values.size() - 1;
  if (values.empty() || divisor == 0) return kNan;
  return std::sqrt(squares(values, mean(values)) / static_cast<double>(divisor));
}

double quantile(Sample values, double share) {
  if (has_nan(values)) return kNan;  // nan has no place in an order
  std::ranges::sort(values);
  return ordered_quantile(values, share);
}

double median(const Sample& values) { return quantile(values, 0.5); }

double mad(const Sample& values) {
  const double centre = median(values);
  Sample distances;
  for (const double value : values) distances.push_back(std::fabs(value - centre));
  return 1.4826 * median(distances);
}

double Estimate::p() const {
  if (!(error > 0)) return change == 0 ? 1 : 0;
  return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(freedom), std::abs(change) / error));
}

Moments moments(const Sample& values) { return {mean(values), std::pow(deviation(values), 2), values.size()}; }

Estimate welch(const Moments& a, const Moments& b) {
  const auto count = [](const Moments& of) { return static_cast<double>(of.count); };
  if (a.count < 2 || b.count < 2) {
    const Moments& known = a.count < 2 ? b : a;
    return {b.mean - a.mean, std::sqrt(known.variance * (1 / count(a) + 1 / count(b))), count(known) - 1};
  }
  const double of_a = a.variance / count(a), of_b = b.variance / count(b);
  const double freedom = std::pow(of_a + of_b, 2) / (of_a * of_a / (count(a) - 1) + of_b * of_b / (count(b) - 1));
  return {b.mean - a.mean, std::sqrt(of_a + of_b), freedom};
}

Interval mean_interval(const Sample& values, double confidence) {
  const double spread = deviation(values);
  if (!std::isfinite(spread)) return {kNan, kNan};
  const auto size = static_cast<double>(values.size());
  const boost::math::students_t distribution(size - 1);
  const double half = boost::math::quantile(distribution, 0.5 + confidence / 2) * spread / std::sqrt(size);
  return {mean(values) - half, mean(values) + half};
}

double median_in_place(Sample& values) {
  if (values.empty()) return kNan;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

Interval bootstrap(const std::vector<Sample>& groups, const std::function<double(Sample&)>& statistic,
                   std::uint64_t seed, double confidence) {
  std::size_t size = 0;
  for (const Sample& group : groups) {
    if (has_nan(group)) return {kNan, kNan};
    size += group.size();
  }
  const bool by_group = groups.size() > 1;
  if (groups.empty() || (by_group ? groups.size() : size) < 2) return {kNan, kNan};
  std::mt19937_64 generator(seed);
  // The high half of a product instead of std::uniform_int_distribution, whose numbers differ between libraries.
  const auto drawn = [&](std::size_t count) { return static_cast<std::size_t>(((generator() >> 32) * count) >> 32); };
  const std::size_t rounds = std::clamp<std::size_t>(kBootstrapWork / size, kFewestRounds, kMostRounds);
  Sample values, results;
  for (std::size_t round = 0; round < rounds; ++round) {
    values.clear();
    if (by_group) {
      for (std::size_t i = 0; i < groups.size(); ++i) {
        const Sample& group = groups[drawn(groups.size())];
        values.insert(values.end(), group.begin(), group.end());
      }
    } else {
      for (std::size_t i = 0; i < size; ++i) values.push_back(groups[0][drawn(size)]);
    }
    results.push_back(statistic(values));
  }
  if (has_nan(results)) return {kNan, kNan};
  std::ranges::sort(results);
  return {ordered_quantile(results, 0.5 - confidence / 2), ordered_quantile(results, 0.5 + confidence / 2)};
}

std::size_t warmup_length(const Sample& values) {
  std::size_t best = 0;
  double smallest = std::numeric_limits<double>::infinity();
  double centre = 0, squares = 0;  // of the values from here to the end, by Welford's recurrence
  for (std::size_t size = 1; size <= values.size(); ++size) {
    const double value = values[values.size() - size], step = value - centre;
    const auto count = static_cast<double>(size);
    centre += step / count;
    squares += step * (value - centre);
    const std::size_t leave = values.size() - size;
    const double score = squares / (count * count);
    if (leave > values.size() / 2 || !(score <= smallest)) continue;
    smallest = score;
    best = leave;
  }
  return best;
}

std::vector<bool> far_out(const Sample& values) {
  const double centre = median(values);
  const double limit = std::max(3.5 * mad(values), 1e-6 * std::fabs(centre));
  std::vector<bool> marks;
  for (const double value : values) marks.push_back(!(std::fabs(value - centre) <= limit));
  return marks;
}

}  // namespace zs::stat

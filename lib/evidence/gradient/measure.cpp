// SPDX-License-Identifier: Apache-2.0
#include "gradient/measure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/number.hpp"

namespace zs::gradient {
namespace {

/// A span of finite elements.
Measure of_finite(std::span<const float> values) {
  Measure measure;
  measure.count = static_cast<std::int64_t>(values.size());
  double sum = 0, squares = 0;
  float largest = 0;
  std::int64_t zeros = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
    largest = std::max(largest, std::fabs(value));
    zeros += value == 0;
  }
  measure.zeros = zeros;
  measure.squares = squares;
  measure.largest = largest;
  if (values.empty()) return measure;
  measure.mean = sum / static_cast<double>(values.size());
  // A second pass: the difference of two sums would lose precision if the mean is large.
  for (const float value : values) {
    const double difference = value - measure.mean;
    measure.deviations += difference * difference;
  }
  return measure;
}

}  // namespace

void Measure::add(std::span<const float> values) {
  while (!values.empty()) {
    const auto first_non_finite =
        std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
    const auto finite_before = static_cast<std::size_t>(first_non_finite - values.begin());
    add(of_finite(values.first(finite_before)));
    if (first_non_finite == values.end()) return;
    ++count;
    (std::isnan(*first_non_finite) ? nans : infinities) += 1;
    values = values.subspan(finite_before + 1);
  }
}

void Measure::add(const Measure& other) {
  const auto mine = static_cast<double>(finite()), theirs = static_cast<double>(other.finite());
  if (theirs > 0) {  // Chan, Golub and LeVeque 1979
    const double difference = other.mean - mean;
    mean += difference * theirs / (mine + theirs);
    deviations += other.deviations + difference * difference * mine * theirs / (mine + theirs);
  }
  count += other.count;
  zeros += other.zeros;
  nans += other.nans;
  infinities += other.infinities;
  squares += other.squares;
  largest = std::max(largest, other.largest);
}

double Measure::norm() const {
  if (nans > 0) return kNan;
  return infinities > 0 ? std::numeric_limits<double>::infinity() : std::sqrt(squares);
}

double Measure::rms() const { return count > 0 ? norm() / std::sqrt(static_cast<double>(count)) : kNan; }

double Measure::variance() const { return finite() > 0 ? deviations / static_cast<double>(finite()) : kNan; }

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

double cosine(double dot, double norm_a, double norm_b) {
  const double product = norm_a * norm_b;
  if (!(product > 0) || !std::isfinite(product) || !std::isfinite(dot)) return kNan;
  return std::clamp(dot / product, -1.0, 1.0);
}

}  // namespace zs::gradient

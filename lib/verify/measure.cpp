// SPDX-License-Identifier: Apache-2.0
#include "verify/measure.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace zs::verify {
namespace {

/// The place of a float among all floats, in order; both zeros are 0.
template <typename Integer, typename Real>
std::int64_t place(Real value) {
  const auto bits = std::bit_cast<Integer>(value);
  return bits < 0 ? -static_cast<std::int64_t>(bits & std::numeric_limits<Integer>::max())
                  : static_cast<std::int64_t>(bits);
}

template <typename Integer, typename Real>
std::int64_t distance(Real a, Real b) {
  if (std::isnan(a) || std::isnan(b)) return kNoDistance;
  const std::int64_t left = place<Integer>(a), right = place<Integer>(b);
  // Doubles of opposite signs may be further apart than an integer counts.
  const auto apart =
      static_cast<std::uint64_t>(std::max(left, right)) - static_cast<std::uint64_t>(std::min(left, right));
  return static_cast<std::int64_t>(std::min(apart, static_cast<std::uint64_t>(kNoDistance)));
}

double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
}

}  // namespace

std::int64_t ulp_distance(float a, float b) { return distance<std::int32_t>(a, b); }
std::int64_t ulp_distance(double a, double b) { return distance<std::int64_t>(a, b); }

bool Tolerance::accepts(double target, double reference) const {
  if (!std::isfinite(target) || !std::isfinite(reference)) return false;
  return std::fabs(target - reference) <= atol + rtol * std::fabs(reference);
}

void Difference::add(double target, double reference, std::int64_t apart) {
  const double difference = std::fabs(target - reference);
  join({difference, difference == 0 ? 0 : difference / std::max(std::fabs(target), std::fabs(reference)), apart});
}

void Difference::join(const Difference& other) {
  absolute = larger(absolute, other.absolute);
  relative = larger(relative, other.relative);
  ulp = std::max(ulp, other.ulp);
}

std::optional<std::int64_t> compare(const float* target, const float* reference, std::int64_t n, double factor,
                                    const Tolerance& tolerance, Difference& difference) {
  std::optional<std::int64_t> first;
  for (std::int64_t i = 0; i < n; ++i) {
    if (target[i] == reference[i] && std::isfinite(target[i])) continue;
    const double a = static_cast<double>(target[i]) * factor, b = static_cast<double>(reference[i]) * factor;
    difference.add(a, b, ulp_distance(target[i], reference[i]));
    if (!first && !tolerance.accepts(a, b)) first = i;
  }
  return first;
}

}  // namespace zs::verify

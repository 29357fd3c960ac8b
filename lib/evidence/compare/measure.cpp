// SPDX-License-Identifier: Apache-2.0
#include "compare/measure.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/number.hpp"

namespace zs::compare {
namespace {

double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
}

}  // namespace

std::int64_t ulp_distance(std::uint64_t a, std::uint64_t b, int width) {
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  // The place among all floats, in order, from the lowest: -inf ... -0, +0 ... inf.
  const auto place = [&](std::uint64_t bits) { return bits & sign ? sign - 1 - (bits & (sign - 1)) : bits + sign; };
  const std::uint64_t left = place(a), right = place(b);
  const std::uint64_t apart = std::max(left, right) - std::min(left, right);
  // Doubles of opposite signs may be further apart than an integer counts.
  return static_cast<std::int64_t>(std::min(apart, static_cast<std::uint64_t>(kNoDistance)));
}

std::int64_t ulp_distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNoDistance;
  return ulp_distance(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(b), 32);
}

std::int64_t ulp_distance(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kNoDistance;
  return ulp_distance(std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(b), 64);
}

std::string ulp_text(std::int64_t distance) { return distance == kNoDistance ? "nan" : to_text(distance); }

bool Tolerance::accepts(double a, double b) const {
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  if (exact()) return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  return std::fabs(a - b) <= atol + rtol * std::fabs(b);
}

void Difference::add(double a, double b, std::int64_t distance) {
  const double difference = std::fabs(a - b);
  join({difference, difference == 0 ? 0 : difference / std::max(std::fabs(a), std::fabs(b)), distance});
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
    const bool same = std::bit_cast<std::uint32_t>(target[i]) == std::bit_cast<std::uint32_t>(reference[i]);
    if (same && std::isfinite(target[i])) continue;
    const double a = static_cast<double>(target[i]) * factor, b = static_cast<double>(reference[i]) * factor;
    difference.add(a, b, ulp_distance(target[i], reference[i]));
    if (!first && !tolerance.accepts(a, b)) first = i;
  }
  return first;
}

std::string decimal(double value) {
  const auto narrow = static_cast<float>(value);
  return static_cast<double>(narrow) == value || std::isnan(value) ? to_text(narrow) : to_text(value);
}

std::string hexadecimal(double value) { return fmt::format("{:a}", value); }

}  // namespace zs::compare

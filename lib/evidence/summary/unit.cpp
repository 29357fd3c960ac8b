// SPDX-License-Identifier: Apache-2.0
#include "summary/unit.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "base/number.hpp"

namespace zs::summary {
namespace {

std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, std::clamp(decimals, 0, 17)); }

/// Digits before the point; for numbers below 1, minus the zeros after it: 0.05 gives -1.
int whole_digits(double value) {
  return value == 0 ? 1 : static_cast<int>(std::floor(std::log10(std::fabs(value)))) + 1;
}

/// A size that is read with all its digits.
bool plain(double value) { return value == 0 || (std::fabs(value) >= 1e-4 && std::fabs(value) < 1e15); }

/// The decimals of the shortest text that is the value.
int decimals_of(double value) {
  for (int decimals = 0; decimals < 17; ++decimals) {
    if (parse_real(fixed(value, decimals)) == value) return decimals;
  }
  return 17;
}

Unit largest_of(double largest, std::initializer_list<Unit> units) {
  for (const Unit& unit : units) {
    if (largest >= unit.factor) return unit;
  }
  return *(units.end() - 1);
}

}  // namespace

std::string Unit::number(double value, int digits) const {
  const double scaled = value / factor;
  if (!std::isfinite(scaled)) return std::isnan(scaled) ? "nan" : scaled > 0 ? "inf" : "-inf";
  if (!plain(scaled)) return to_rounded_text(scaled, digits);
  return fixed(scaled, std::min(9, digits - whole_digits(scaled)));
}

std::string Unit::measured(double value, double uncertainty) const {
  const double scaled = value / factor, half = uncertainty / factor;
  if (!std::isfinite(scaled) || !std::isfinite(half) || !(half > 0) || !plain(scaled)) return text(value);
  const int decimals = std::min(9, 2 - whole_digits(half));
  const double place = std::pow(10, -decimals);  // 1340 +- 140: neither has more digits than it means
  const auto rounded = [&](double one) {
    return fixed(decimals < 0 ? std::round(one / place) * place : one, decimals);
  };
  return rounded(scaled) + " ± " + rounded(half) + (name.empty() ? "" : " " + name);
}

std::vector<std::string> column(const std::vector<double>& values, int digits) {
  double largest = 0;
  int needed = 0;
  bool all_plain = true;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    largest = std::max(largest, std::fabs(value));
    needed = std::max(needed, decimals_of(value));
    all_plain = all_plain && plain(value);
  }
  std::vector<std::string> texts;
  const int decimals = std::clamp(digits - whole_digits(largest), 0, needed);
  for (const double value : values)
    texts.push_back(!std::isfinite(value) ? to_text(value)
                    : all_plain           ? fixed(value, decimals)
                                          : to_rounded_text(value, digits));
  return texts;
}

std::string Unit::text(double value, int digits) const {
  return number(value, digits) + (name.empty() ? "" : " " + name);
}

Unit unit_of(stat::Kind kind, double largest) {
  if (kind == stat::Kind::seconds) return time_unit(largest);
  if (kind == stat::Kind::bytes) return bytes_unit(largest);
  return kind == stat::Kind::rate ? rate_unit(largest) : Unit{};
}

Unit time_unit(double largest) {
  if (largest >= 7200) return {3600, "h"};  // from two of them on
  if (largest >= 300) return {60, "min"};
  return largest_of(largest, {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}});
}

Unit bytes_unit(double largest) {
  return largest_of(largest, {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}});
}

Unit rate_unit(double largest) { return largest_of(largest, {{1e9, "G/s"}, {1e6, "M/s"}, {1e3, "k/s"}, {1, "/s"}}); }

}  // namespace zs::summary

// SPDX-License-Identifier: Apache-2.0
#include "summary/unit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/number.hpp"

namespace zs::summary {
namespace {

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
  if (scaled != 0 && !(std::fabs(scaled) >= 1e-4 && std::fabs(scaled) < 1e15)) return to_rounded_text(scaled, digits);
  const int whole = scaled == 0 ? 1 : static_cast<int>(std::floor(std::log10(std::fabs(scaled)))) + 1;
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.*f", std::clamp(digits - whole, 0, 9), scaled);
  return buffer.data();
}

std::string Unit::text(double value, int digits) const {
  return number(value, digits) + (name.empty() ? "" : " " + name);
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

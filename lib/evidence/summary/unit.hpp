// SPDX-License-Identifier: Apache-2.0
// Values with the unit that suits a whole figure or table: one unit for all, chosen by the largest.
#pragma once
#include <string>
#include <vector>

#include "stat/column.hpp"

namespace zs::summary {

struct Unit {
  double factor = 1;  ///< value in this unit = value / factor
  std::string name;   ///< "ms", "GB"

  /// "12.3 ms": `digits` significant digits, never fewer than the whole part needs.
  std::string text(double value, int digits = 4) const;
  /// "1.32 ± 0.15 s": the value to the place that the second digit of its uncertainty has; without one as text().
  std::string measured(double value, double uncertainty) const;
  /// As text(), without the unit.
  std::string number(double value, int digits = 4) const;
};

/// `values` as a column has them: all with as many decimals as the largest needs for `digits` significant digits, but
/// no more than any of them has; zeros at the end stay. Not finite ones as they are.
std::vector<std::string> column(const std::vector<double>& values, int digits);

/// The unit for values of this kind, by the largest: of seconds, bytes and rates one of those below, else none.
Unit unit_of(stat::Kind kind, double largest);

/// h, min, s, ms or us by `largest` seconds.
Unit time_unit(double largest);
/// B to PB by `largest` bytes (powers of 1000).
Unit bytes_unit(double largest);
/// 1, k, M, G, with "/s" behind.
Unit rate_unit(double largest);

}  // namespace zs::summary

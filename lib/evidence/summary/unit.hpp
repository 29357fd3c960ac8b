// SPDX-License-Identifier: Apache-2.0
// Values with a common unit for a whole figure or table, chosen by the largest.
#pragma once
#include <string>
#include <vector>

#include "stat/column.hpp"

namespace zs::summary {

struct Unit {
  double factor = 1;  ///< value in this unit = value / factor
  std::string name;   ///< "ms", "GB"

  /// "12.3 ms": `digits` significant digits, or more if the integer part needs them.
  std::string text(double value, int digits = 4) const;
  /// "1.32 ± 0.15 s": rounded to the second digit of the uncertainty; without one as text().
  std::string measured(double value, double uncertainty) const;
  /// Like text(), without the unit.
  std::string number(double value, int digits = 4) const;
};

/// `values` for a column, all with the same number of decimals: enough for `digits` significant digits of the largest,
/// but no more than any of them has; trailing zeros stay. Values that are not finite are unchanged.
std::vector<std::string> column(const std::vector<double>& values, int digits);

/// The unit for values of this kind, by the largest: seconds, bytes and rates have one of those below, others none.
Unit unit_of(stat::Kind kind, double largest);

/// h, min, s, ms or us by `largest` seconds.
Unit time_unit(double largest);
/// B to PB by `largest` bytes (powers of 1000).
Unit bytes_unit(double largest);
/// 1, k, M, G, followed by "/s".
Unit rate_unit(double largest);

}  // namespace zs::summary

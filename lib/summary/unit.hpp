// SPDX-License-Identifier: Apache-2.0
// Values with the unit that suits a whole figure or table: one unit for all, chosen by the largest.
#pragma once
#include <string>

namespace zs::summary {

struct Unit {
  double factor = 1;  ///< value in this unit = value / factor
  std::string name;   ///< "ms", "GB"

  /// "12.3 ms": `digits` significant digits, never fewer than the whole part needs.
  std::string text(double value, int digits = 4) const;
  /// As text(), without the unit.
  std::string number(double value, int digits = 4) const;
};

/// h, min, s, ms or us by `largest` seconds.
Unit time_unit(double largest);
/// B to PB by `largest` bytes (powers of 1000).
Unit bytes_unit(double largest);
/// 1, k, M, G, with "/s" behind.
Unit rate_unit(double largest);

}  // namespace zs::summary

// SPDX-License-Identifier: Apache-2.0
// The precision of numbers that were read from text.
#pragma once
#include <string>
#include <vector>

#include "metric/table.hpp"

namespace zs::compare {

struct Precision {
  bool every_bit = true;
  int decimals = 0;  ///< else: digits after the point; a value is known to half a unit of the last one

  double uncertainty() const;
  std::string text() const;  ///< "every bit", "6 decimals (5e-07)"
  bool operator==(const Precision&) const = default;
};

/// The precision of numbers from their text. If any has fifteen significant digits, all are taken as exact.
Precision precision_of(const std::vector<std::string>& cells);

/// The same for a column of a metric file. Only numbers that were read in a log are known to the digits of that log;
/// others are exact, however short they are.
Precision precision_of(const metric::Run& run, const metric::Column& column);

}  // namespace zs::compare

// SPDX-License-Identifier: Apache-2.0
// How exactly numbers are known that somebody has written down.
#pragma once
#include <string>
#include <vector>

namespace zs::compare {

struct Precision {
  bool every_bit = true;
  int decimals = 0;  ///< else: so many were written, and a value is known to half a unit of the last

  double uncertainty() const;
  std::string text() const;  ///< "every bit", "6 decimals (5e-07)"
  bool operator==(const Precision&) const = default;
};

/// Of numbers as they are spelt. Fifteen significant digits anywhere mean that whoever wrote them kept them all.
Precision precision_of(const std::vector<std::string>& cells);

}  // namespace zs::compare

// SPDX-License-Identifier: Apache-2.0
// Whether two numbers are the same, or nearly.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace zs {

/// Two NaNs with the same bits are the same; 0 and -0 are not.
inline bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

/// Whether two finite numbers are within a tolerance relative to the larger one.
inline bool close_to(double a, double b, double by) {
  return std::fabs(a - b) <= by * std::max(std::fabs(a), std::fabs(b));
}

}  // namespace zs

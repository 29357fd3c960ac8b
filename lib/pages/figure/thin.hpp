// SPDX-License-Identifier: Apache-2.0
// Curves with no more points than a picture can show.
#pragma once
#include <cstddef>

#include "figure/figure.hpp"

namespace zs::figure {

/// Columns across, more than a report's picture has.
inline constexpr std::size_t kThinColumns = 1000;

/// Leaves of each curve, of so many columns of equal width on the x axis, the points that are first or last in their
/// column, or the least or the largest of its y, raw, low or high there; the first and last point of the curve and
/// every point that is not finite or lies beside one stay. So each column reaches as far up and down as it did, and no
/// peak and no gap is lost. Curves of at most four points a column stay as they are. Returns how many points went.
/// REQUIRES: x ascends.
std::size_t thin(Panel& panel, std::size_t columns = kThinColumns);

}  // namespace zs::figure

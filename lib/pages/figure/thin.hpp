// SPDX-License-Identifier: Apache-2.0
// Curves for pictures and pages: reduced to the points that a picture can show, and as JSON.
#pragma once
#include <cstddef>
#include <string>

#include "figure/figure.hpp"
#include "figure/theme.hpp"

namespace zs::figure {

/// Columns of a picture; more than a report's picture has.
inline constexpr std::size_t kThinColumns = 1000;

/// Divides the x axis into columns of equal width and keeps of each curve only the points that are first or last in
/// their column, or have its minimum or maximum of y, raw, low or high; also the first and last point of the curve and
/// every point that is not finite or next to one. So each column keeps its vertical extent, and no peak and no gap is
/// lost. Curves of at most four points per column are unchanged. Returns the number of removed points. REQUIRES: x
/// ascends.
std::size_t thin(Panel& panel, std::size_t columns = kThinColumns);

/// The curves of a panel as JSON:
/// {"x":LABEL,"series":[{"name":..,"colour":N,"x":[..],"y":[..]}|{"name":..,"colour":N,"same":INDEX}]}, null for a
/// value that is not finite; "same" if all values are equal to an earlier curve's.
std::string curves_json(const Panel& panel, const Theme& theme);

}  // namespace zs::figure

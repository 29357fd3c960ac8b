// SPDX-License-Identifier: Apache-2.0
// Pictures of very many conditions: distributions of similar ones, and the outliers.
#pragma once
#include <string>
#include <vector>

#include "plot/figures.hpp"

namespace zs::plot {

inline constexpr std::size_t kMostBars = 24, kMostCurves = 40;  ///< with more conditions distributions are drawn
inline constexpr std::size_t kMostNamed = 8;                    ///< conditions drawn separately

/// For more than kMostBars bars: removes those without a value, unless they failed; if still too many, draws a box per
/// group of similar conditions (stat/alike.hpp) and a bar for each that failed or is outside its group's fence
/// (stat/outlier.hpp), at most kMostNamed. Notes explain this and name what was left out. `panel` has a bar for each
/// condition, in `unit`. True if there are boxes.
bool gather_bars(Panel& panel, const std::vector<Condition>& conditions, const Unit& unit);

/// For more than kMostCurves curves: draws a band per group of similar conditions, from the 10 to the 90 % quantile at
/// each step around the median, and a curve for each that failed or whose final loss is outside its group's fence, at
/// most kMostNamed. `panel` has a curve for each condition. Returns whether it did.
bool gather_curves(Panel& panel, const std::vector<Condition>& conditions);

/// The conditions that looks() colours if there are too many: "the five with the lowest final losses".
std::string highlighted(const std::vector<Condition>& conditions);

}  // namespace zs::plot

// SPDX-License-Identifier: Apache-2.0
// More conditions than can be told apart in one picture: distributions of like ones, and those that stand out.
#pragma once
#include <string>
#include <vector>

#include "plot/figures.hpp"

namespace zs::plot {

inline constexpr std::size_t kMostBars = 24, kMostCurves = 40;  ///< of more conditions distributions are drawn
inline constexpr std::size_t kMostNamed = 8;                    ///< of them stand alone

/// Of more than kMostBars bars: those without a value go, unless they failed; where there are still too many, a box for
/// each group of like conditions (stat/alike.hpp) and a bar for each that failed or lies outside of its group's fence
/// (stat/outlier.hpp), at most kMostNamed. Notes say how it was made, and what was left out. `panel` has a bar for each
/// condition, in `unit`. True where there are boxes.
bool gather_bars(Panel& panel, const std::vector<Condition>& conditions, const Unit& unit);

/// Of more than kMostCurves curves: a band for each group of like conditions, from the 10 to the 90 % quantile at each
/// step around the median, and a curve for each that failed or whose loss at the end lies outside of its group's fence,
/// at most kMostNamed. `panel` has a curve for each condition. True where it did.
bool gather_curves(Panel& panel, const std::vector<Condition>& conditions);

/// Which conditions looks() gives a colour, where they are too many: "the five with the lowest final losses".
std::string highlighted(const std::vector<Condition>& conditions);

}  // namespace zs::plot

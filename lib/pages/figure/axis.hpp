// SPDX-License-Identifier: Apache-2.0
// Ticks of an axis, for renderers that place them themselves.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "figure/figure.hpp"

namespace zs::figure {

inline constexpr double kChar = 7.4;  // width of a character, an upper estimate

struct Tick {
  double at = 0;
  std::string label;
};

/// About `count` round numbers within [low, high], with enough digits to distinguish them; for a range that is flat()
/// only its low end. With `log`, decades (with 2 and 5 if there are few decades, and only some of them if there are
/// many). REQUIRES: low <= high, both finite; low > 0 with `log`.
std::vector<Tick> ticks(double low, double high, int count, bool log, bool whole = false);

/// Numbers for one axis in a common form: all plain ("0.0001", "0.001"), or all with an exponent ("1e-6", "0.1" as
/// "1e-1") if plain ones would be long; from ten million on with a common suffix: "50 M".
std::vector<std::string> labels(const std::vector<double>& values);
/// The same for words that are all numbers; other words are unchanged.
std::vector<std::string> labels(const std::vector<std::string>& words);

/// The position of `value` on the axis: 0 at its low end, 1 at its high end; in the middle if the range is flat().
double share(double value, const Range& range, bool log);

/// The ticks of a panel's x axis over `range`: those it specifies, else about `count` round ones.
std::vector<Tick> x_ticks(const Panel& panel, const Range& range, int count);
/// The same of the y axis. Where all values are whole, no tick of either axis is between two of them.
std::vector<Tick> y_ticks(const Panel& panel, const Range& range, int count);
/// The ticks that `make(count)` gives, one for each `pitch` of `width`, or fewer until no label touches the next.
std::vector<Tick> fitting(double width, double pitch, const std::function<std::vector<Tick>(int count)>& make);

/// The right end of a bar with its error bar and its dots. REQUIRES: its value is finite.
double bar_reach(const Bar& bar);

/// `text` with at most `width` characters (UTF-8 code points): a longer one has "..." in its middle.
std::string shortened(const std::string& text, std::size_t width);

/// `text` in lines of at most `width` code points, broken at blanks; a longer word gets its own line.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);

}  // namespace zs::figure

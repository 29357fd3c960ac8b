// SPDX-License-Identifier: Apache-2.0
// Ticks of an axis, for the renderers that place them themselves.
#pragma once
#include <string>
#include <vector>

#include "figure/figure.hpp"

namespace zs::figure {

struct Tick {
  double at = 0;
  std::string label;
};

/// Round numbers within [low, high], about `count` of them, labelled with just the digits that tell them apart; of a
/// range that is flat() its low end alone. With `log`, decades (and 2 and 5 within them where there are few, not all of
/// them where there are many). REQUIRES: low <= high, both finite; low > 0 with `log`.
std::vector<Tick> ticks(double low, double high, int count, bool log);

/// Numbers that stand side by side, in one form: all plain ("0.0001", "0.001"), or all with an exponent ("1e-6", "0.1"
/// as "1e-1") where plain ones of the smallest or largest would be long; from ten million on with one suffix: "50 M".
std::vector<std::string> labels(const std::vector<double>& values);
/// The same for words that are all numbers; others stay as they are.
std::vector<std::string> labels(const std::vector<std::string>& words);

/// How far along the axis `value` lies: 0 at its low end, 1 at its high one; in the middle where the range is flat().
double share(double value, const Range& range, bool log);

/// The ticks of a panel's x axis over `range`: where it asks for them, else about `count` round ones.
std::vector<Tick> x_ticks(const Panel& panel, const Range& range, int count);

/// How far to the right a bar, its error bar and its dots reach. REQUIRES: its value is finite.
double bar_reach(const Bar& bar);

/// `text` of at most `width` characters (UTF-8 code points): its middle becomes "..." where it is longer.
std::string shortened(const std::string& text, std::size_t width);

/// `text` in lines of at most `width` code points, broken at blanks; a longer word stands alone.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);

}  // namespace zs::figure

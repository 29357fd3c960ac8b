// SPDX-License-Identifier: Apache-2.0
// A figure as data, independent of how it is drawn: the input of every renderer (gnuplot, SVG, terminal).
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace zs::figure {

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// A colour of the theme: a hue of the palette, plain or strong (darker on paper, lighter on a dark page), or one of
/// the fixed roles. Hues beyond the palette are its strong ones: twice as many as it has colours are different.
struct Ink {
  enum class Role : std::uint8_t { palette, text, note, grid, paper, failure };
  std::size_t hue = 0;
  bool strong = false;
  Role role = Role::palette;

  Ink() = default;
  Ink(std::size_t hue, bool strong = false) : hue(hue), strong(strong) {}  // NOLINT: implicit on purpose
  Ink(Role role) : role(role) {}                                           // NOLINT
  bool operator==(const Ink&) const = default;
};

/// One curve. A y that is not finite is a gap.
struct Series {
  std::string name;  ///< as in the legend
  Ink colour{};
  std::vector<double> x, y;           ///< equal length, x ascending
  std::vector<double> raw{};          ///< if y is smoothed: the original values, drawn faintly behind it; as long as y
  std::vector<double> low{}, high{};  ///< a band around y, as long as y; empty for none
  std::string note{};                 ///< shown after the name in the legend, "FAILED"
  bool rest = false;                  ///< one of many: drawn in grey, without its name
  bool behind = false;                ///< drawn before the others
  /// Among coinciding curves this one is number `layer` of `layers`; renderers stripe them. `under` is the index of the
  /// first of them.
  std::size_t layer = 0, layers = 1, under = 0;
};

/// One bar. Without a value (not finite) only its label is drawn, marked as a failure if `failed`.
struct Bar {
  std::string name;
  Ink colour{};
  double value = kNone;
  double low = kNone, high = kNone;  ///< error bar; not finite: none
  std::string label{};               ///< the value with its unit, printed at the bar's end
  bool failed = false;
  double inner = kNone;        ///< a second value, marked by a tick inside the bar; not finite: none
  double from = 0;             ///< the start of the bar: above 0 it is a box
  std::vector<double> dots{};  ///< single values, drawn as points
};

/// One cell of a heat map.
struct Cell {
  std::size_t column = 0, row = 0;
  double value = kNone;
  std::string label{};
  bool best = false;
};

/// One pair of axes: curves, or bars, or a heat map.
struct Panel {
  /// The style of bars: from 0; as boxes with lines and dots; or as a dot on its range.
  enum class Style : std::uint8_t { bars, boxes, points };
  std::string title{};
  std::string x_label{}, y_label{};  ///< for bars x is the value axis
  bool log_x = false, log_y = false;
  std::vector<double> x_ticks{};  ///< ticks of the x axis of curves; empty: round ones
  std::vector<Series> series{};
  std::vector<Bar> bars{};
  std::vector<std::string> columns{}, rows{};  ///< of a heat map, in order
  std::vector<Cell> cells{};
  std::string key{};                 ///< of a heat map: which end is better
  std::vector<std::string> notes{};  ///< sentences under the axes
  bool from_zero = false;            ///< the y axis starts at 0
  bool x_from_zero = false;          ///< the x axis of curves starts at 0
  Style style = Style::bars;
  double reference = kNone;                      ///< points and curves: a line across them; heat maps: red above it
  double shade_low = kNone, shade_high = kNone;  ///< points: the range that counts as good as the reference
};

inline bool is_map(const Panel& panel) { return !panel.cells.empty(); }
inline bool is_bars(const Panel& panel) { return !panel.bars.empty(); }

struct Figure {
  std::string title;
  std::vector<Panel> panels;
  std::size_t columns = 1;  ///< of panels
};

/// The figure in the form that renderers draw: all texts are printable (base/text.hpp), and no difference of two
/// numbers overflows: values on an axis beyond 1e100, or below 1e-100, are divided by a power of ten, named in the
/// label.
Figure drawable(Figure figure);

/// Sets layer and layers of curves that cannot be distinguished: their distance is at most `tolerance` times the range
/// of all values, at their common x (at least half of the shorter curve's x). With `log`, distances are logarithmic.
void stripe_coinciding(std::vector<Series>& series, double tolerance = 0.004, bool log = false);

/// The smallest and largest finite value over the curves (bands included); low > high if there is none.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void include(double value);
  bool empty() const { return !(low <= high); }
  /// At most a few units in the last place wide: an axis has no round numbers between values so close.
  bool flat() const;
};
Range x_range(const Panel& panel);  ///< for bars: includes their error bars and dots
Range y_range(const Panel& panel);
/// The range of the y axis of curves: y_range with a margin, or from 0 if requested. Empty if no value is finite.
Range y_axis(const Panel& panel);

}  // namespace zs::figure

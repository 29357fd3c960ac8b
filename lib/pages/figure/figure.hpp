// SPDX-License-Identifier: Apache-2.0
// A figure as data, independent of how it is drawn: the input of every renderer (gnuplot, SVG, terminal).
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "figure/marks.hpp"

namespace zs::figure {

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

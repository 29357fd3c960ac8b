// SPDX-License-Identifier: Apache-2.0
// Lays a figure out as a scene, panel by panel. Renderers need only scene.hpp.
#pragma once
#include <cmath>
#include <utility>

#include "figure/axis.hpp"
#include "figure/scene.hpp"

namespace zs::figure {

inline constexpr double kLine = 19;  // height of a line of text

inline std::string legend_name(const Series& series) {
  return series.name + (series.note.empty() ? "" : " (" + series.note + ")");
}
/// Whether a value can be shown on an axis.
inline bool shown_on(double value, bool log) { return std::isfinite(value) && (!log || value > 0); }
/// The tint of a cell of a heat map for its share of the range: weak enough to keep its text readable.
inline double tint(double share) { return 0.06 + 0.56 * share; }

class Layout {
 public:
  Layout(const Figure& figure, const Shape& shape);
  Scene take() { return std::move(scene_); }

 private:
  using Anchor = Mark::Anchor;
  /// The position of a panel: its top left corner and its width.
  struct Frame {
    double left, top, width;
    double right() const { return left + width; }
    bool phone() const { return width < 500; }
  };
  /// Converts a panel's values to pixels.
  struct Axis {
    Range range;
    double from, to;
    bool log;
    double operator()(double value) const { return from + (to - from) * share(value, range, log); }
  };

  Shape shape_;
  Scene scene_;

  Mark& text(const std::string& words, double x, double y, Anchor anchor, Ink ink);
  /// Draws a note, wrapped to `most` characters, from `y` on; returns the position of a next line.
  double paragraph(const std::string& words, double most, double x, double y, double size = 1);
  Mark& line(std::vector<Point> at, Ink ink, double width = 1);
  Mark& area(std::vector<Point> corners, Ink ink, double opacity = 1);
  Mark& box(double x, double y, double width, double height, Ink ink, double opacity = 1);
  void dot(double x, double y, double radius, Ink ink);

  /// Each draws at the frame and returns its lower end.
  double panel(const Panel& panel, std::size_t index, Frame frame);
  double curves(const Panel& panel, std::size_t index, const Frame& frame);
  double legend(const std::vector<const Series*>& named, std::size_t others, const Frame& frame);
  double bars(const Panel& panel, const Frame& frame);
  double heat_map(const Panel& panel, const Frame& frame);

  void curve(const Series& series, const Axis& px, const Axis& py, bool markers);
  void band(const Series& series, const Axis& px, const Axis& py);
  void name_at_ends(const std::vector<const Series*>& named, const Axis& px, const Axis& py);
  void bar(const Bar& bar, const Panel& panel, const Axis& px, double middle);
  void whisker(const Bar& bar, const Axis& px, double middle);
  double colour_key(const Range& range, const Panel& panel, const Frame& frame, double top);
};

}  // namespace zs::figure

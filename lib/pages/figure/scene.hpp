// SPDX-License-Identifier: Apache-2.0
// A figure laid out: lines, areas, dots and texts at their places. SVG and gnuplot print the same one.
#pragma once
#include <string>
#include <vector>

#include "figure/figure.hpp"
#include "figure/theme.hpp"

namespace zs::figure {

/// In units of which text is 13 high, from the top left corner.
struct Point {
  double x = 0, y = 0;
};

struct Mark {
  enum class Shape : std::uint8_t { line, area, dot, text };
  enum class Anchor : std::uint8_t { start, middle, end };
  Shape shape = Shape::line;
  std::vector<Point> at;  ///< of a dot its centre; of a text its anchor, half-way up a small letter
  Ink ink{};
  double size = 1;  ///< width of a line, radius of a dot, height of a text relative to the usual one
  double opacity = 1;
  double dash = 0, gap = 0;  ///< of a line; 0: solid
  std::string text{};
  Anchor anchor = Anchor::start;
  bool bold = false, halo = false;  ///< halo: on a rim of the paper's colour
};

/// Where a pointer over curves reads their x: [x0, x1] x [y0, y1] shows [low, high].
struct Pointer {
  std::size_t panel = 0;
  double x0 = 0, x1 = 0, y0 = 0, y1 = 0, low = 0, high = 0;
  bool log = false;
};

struct Scene {
  double width = 0, height = 0;
  std::vector<Mark> marks;  ///< later ones lie on top
  std::vector<Pointer> pointers;
};

/// How a picture is asked for.
struct Shape {
  double width = 880;       ///< narrower than 500: laid out for a phone
  double curve_height = 0;  ///< of the axes of curves; 0: what suits the width
  bool title = false;       ///< the figure's title stands above
};

Scene scene(const Figure& figure, const Shape& shape);

/// The picture that the theme's sizes ask for, and how many pixels a unit of it is.
Scene scene(const Figure& figure, const Theme& theme);
double pixels(const Theme& theme);

}  // namespace zs::figure

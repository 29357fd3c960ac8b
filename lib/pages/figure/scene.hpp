// SPDX-License-Identifier: Apache-2.0
// A figure laid out: lines, areas, dots and texts with positions. SVG and gnuplot print the same scene.
#pragma once
#include <string>
#include <vector>

#include "figure/figure.hpp"
#include "figure/theme.hpp"

namespace zs::figure {

/// In units of 1/13 of the text height, from the top left corner.
struct Point {
  double x = 0, y = 0;
};

struct Mark {
  enum class Shape : std::uint8_t { line, area, dot, text };
  enum class Anchor : std::uint8_t { start, middle, end };
  Shape shape = Shape::line;
  std::vector<Point> at;  ///< a dot's centre; a text's anchor, at half the height of a small letter
  Ink ink{};
  double size = 1;  ///< width of a line, radius of a dot, height of a text relative to the default
  double opacity = 1;
  double dash = 0, gap = 0;  ///< of a line; 0: solid
  std::string text{};
  Anchor anchor = Anchor::start;
  bool bold = false, halo = false;  ///< halo: on a rim in the paper's colour
};

/// The area in which a pointer over curves reads their x: [x0, x1] x [y0, y1] shows [low, high].
struct Pointer {
  std::size_t panel = 0;
  double x0 = 0, x1 = 0, y0 = 0, y1 = 0, low = 0, high = 0;
  bool log = false;
};

struct Scene {
  double width = 0, height = 0;
  std::vector<Mark> marks;  ///< later ones are on top
  std::vector<Pointer> pointers;
};

/// The requested form of a picture.
struct Shape {
  double width = 880;       ///< below 500: laid out for a phone
  double curve_height = 0;  ///< of the axes of curves; 0: chosen by the width
  bool title = false;       ///< show the figure's title above
};

Scene scene(const Figure& figure, const Shape& shape);

/// The picture with the theme's sizes, and the number of pixels per unit.
Scene scene(const Figure& figure, const Theme& theme);
double pixels(const Theme& theme);

}  // namespace zs::figure

// SPDX-License-Identifier: Apache-2.0
// A grid of terminal cells for curves, drawn with dots finer than a cell.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zs::figure {

/// Braille cells hold 2 x 4 dots; ASCII cells hold one. A cell stores which curves pass through it.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, bool braille);

  std::size_t dots_across() const { return columns_ * across_; }
  std::size_t dots_down() const { return rows_ * down_; }

  /// Sets a dot of a curve (0, 0 is at the top left); ignored if outside.
  void dot(long x, long y, std::size_t curve);
  /// Dots on the straight line between two points, both included.
  void line(long x0, long y0, long x1, long y1, std::size_t curve);

  /// One cell: its glyph (UTF-8; " " if empty) and the curve that owns it. If several curves pass, they alternate along
  /// the columns, `turn` columns each, so that coinciding curves are all visible.
  struct Cell {
    std::string glyph;
    bool empty = true;
    std::size_t curve = 0;
    bool shared = false;
  };
  Cell cell(std::size_t column, std::size_t row, std::size_t turn) const;

 private:
  std::size_t columns_, rows_, across_, down_;
  std::vector<std::uint8_t> dots_;                // one bit per dot, per cell
  std::vector<std::vector<std::size_t>> owners_;  // ascending, per cell
};

}  // namespace zs::figure

// SPDX-License-Identifier: Apache-2.0
// How much room the parts of a panel take in a picture, in pixels.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "plot/figure.hpp"
#include "plot/theme.hpp"

namespace zs::plot {

/// A rectangle in pixels from the top left corner.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;
};

inline bool is_bars(const Panel& panel) { return !panel.bars.empty(); }
inline bool is_map(const Panel& panel) { return !panel.cells.empty(); }
/// The name of a curve as the legend has it.
std::string legend_name(const Series& series);

class Layout {
 public:
  explicit Layout(const Theme& theme) : theme_(theme) {}  ///< the theme outlives this

  double char_width() const { return theme_.font_size * 0.80; }
  double line_height() const { return theme_.font_size * 1.75; }
  /// Characters that fit, at least 10.
  std::size_t chars(double pixels) const;

  /// Of a panel of `width` pixels: its notes, wrapped; its legend; and all of it, from title to notes.
  std::vector<std::string> note_lines(const Panel& panel, double width) const;
  std::size_t legend_columns(const Panel& panel, double width) const;
  std::size_t legend_rows(const Panel& panel, double width) const;
  double title_height(const Panel& panel) const;
  double height(const Panel& panel, double width) const;

 private:
  const Theme& theme_;
};

}  // namespace zs::plot

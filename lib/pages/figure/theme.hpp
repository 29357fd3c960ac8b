// SPDX-License-Identifier: Apache-2.0
// The look of figures: colours, fonts, widths. One theme for pictures, HTML and the terminal.
#pragma once
#include <string>
#include <vector>

#include "figure/figure.hpp"

namespace zs::figure {

struct Theme {
  /// Okabe and Ito's colours, as #RRGGBB: distinguishable with any common colour blindness.
  std::vector<std::string> palette = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                      "#56B4E9", "#D55E00", "#555555", "#B8A800"};
  std::string background = "#FFFFFF", foreground = "#222222", grid = "#CCCCCC", failure = "#B00020", note = "#555555";
  std::string font = "DejaVu Sans";
  double font_size = 11;  ///< points
  double line_width = 2;  ///< points
  int width = 900;        ///< pixels at scale 1, of one panel column
  int height = 480;       ///< pixels at scale 1, of one panel of curves; bars choose their height
  double scale = 2;       ///< of PNG: sharp on dense screens
};

/// A colour as #RRGGBB, as a page's variable, and mixed with the paper to an opacity of `opacity`.
std::string colour(const Ink& ink, const Theme& theme);
std::string css_colour(const Ink& ink, const Theme& theme);
std::string faint(const std::string& colour, const Theme& theme, double opacity);

/// Reads lines "KEY VALUE" ('#' starts a comment line; keys are the names above, palette takes several colours). Other
/// values are kept. Throws Error with path and line.
Theme read_theme(const std::string& path);

/// The theme in the format of read_theme.
std::string to_text(const Theme& theme);

/// Its colours as CSS variables, --c0, --c1, ... (palette), --s0, ... (strong), --ink, --quiet, --grid, --paper, --bad:
/// original, or for a dark page.
std::string css(const Theme& theme, bool dark);

}  // namespace zs::figure

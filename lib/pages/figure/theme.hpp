// SPDX-License-Identifier: Apache-2.0
// How figures look: colours, fonts, widths. One theme for pictures, HTML and the terminal.
#pragma once
#include <string>
#include <vector>

#include "figure/figure.hpp"

namespace zs::figure {

struct Theme {
  /// Okabe and Ito's colours, as #RRGGBB: told apart with any common colour blindness.
  std::vector<std::string> palette = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                      "#56B4E9", "#D55E00", "#555555", "#B8A800"};
  std::string background = "#FFFFFF", foreground = "#222222", grid = "#CCCCCC", failure = "#B00020", note = "#555555";
  std::string font = "DejaVu Sans";
  double font_size = 11;  ///< points
  double line_width = 2;  ///< points
  int width = 900;        ///< pixels at scale 1, of one panel column
  int height = 480;       ///< pixels at scale 1, of one panel of curves; bars take what they need
  double scale = 2;       ///< of PNG, so that it stays sharp on dense screens
};

/// A colour as #RRGGBB, as a page's variable, and mixed with so much of the paper that `opacity` of it is left.
std::string colour(const Ink& ink, const Theme& theme);
std::string css_colour(const Ink& ink, const Theme& theme);
std::string faint(const std::string& colour, const Theme& theme, double opacity);

/// Reads lines "KEY VALUE" ('#' starts a comment line; keys are the names above, palette takes several colours).
/// What it does not name keeps its value. Throws Error with path and line.
Theme read_theme(const std::string& path);

/// The theme as the text that read_theme reads.
std::string to_text(const Theme& theme);

/// Its colours as CSS variables, --c0, --c1, ... (palette), --s0, ... (strong), --ink, --quiet, --grid, --paper, --bad:
/// as they are, or for a dark page.
std::string css(const Theme& theme, bool dark);

}  // namespace zs::figure

// SPDX-License-Identifier: Apache-2.0
// Draws figures in any terminal, without gnuplot and fonts.
#pragma once
#include <string>

#include "figure/figure.hpp"
#include "figure/theme.hpp"

namespace zs::figure {

struct Screen {
  std::size_t width = 80, height = 24;  ///< in cells
  bool unicode = false;                 ///< braille and block characters; else ASCII
  bool colour = false;                  ///< ANSI colours
};

/// The capabilities of stdout: its size if it is a terminal (else COLUMNS and LINES, else 80 x 24), Unicode in a UTF-8
/// locale (LC_ALL, LC_CTYPE, LANG), colour on a terminal unless NO_COLOR is set or TERM is dumb.
Screen screen_of_stdout();

/// The figure as lines of at most `screen.width` cells, newline at the end. A single panel of curves fits the height;
/// bars, long legends and figures of several panels of curves may be higher.
std::string terminal_text(const Figure& figure, const Theme& theme, const Screen& screen);

}  // namespace zs::figure

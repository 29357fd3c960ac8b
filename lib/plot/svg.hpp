// SPDX-License-Identifier: Apache-2.0
// A figure as SVG that stands inside an HTML page: it takes colours from the page's style, so it follows dark mode,
// and carries what a script needs to show values under the pointer.
#pragma once
#include <string>

#include "plot/figure.hpp"
#include "plot/theme.hpp"

namespace zs::plot {

/// An <svg> element of `width` user units; its height follows. Below 500 it is laid out for a phone: names stand above
/// their bars. Colours are CSS variables --c0, --c1, ... (palette), --ink, --grid, --paper, --bad, --quiet; see
/// css(). Curves of more points than can be seen are thinned to the extremes of each pixel column.
std::string svg(const Figure& figure, const Theme& theme, int width);

/// Text with &, <, > and quotes escaped for HTML and XML; control characters dropped.
std::string escaped(const std::string& text);

}  // namespace zs::plot

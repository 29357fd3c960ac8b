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
/// svg_style(). Curves of more points than can be seen are thinned to the extremes of each pixel column.
std::string svg(const Figure& figure, const Theme& theme, int width);

/// The CSS declarations of those variables: light, or for a dark page.
std::string svg_style(const Theme& theme, bool dark);

/// The curves of a panel as JSON:
/// {"x":LABEL,"series":[{"name":..,"colour":N,"x":[..],"y":[..]}|{"name":..,"colour":N,"same":INDEX}]}, null for a
/// value that is not finite; "same" where all values are those of an earlier curve.
std::string curves_json(const Panel& panel, const Theme& theme);

/// Text with &, <, > and quotes escaped for HTML and XML; control characters dropped.
std::string escaped(const std::string& text);

}  // namespace zs::plot

// SPDX-License-Identifier: Apache-2.0
// A figure as a gnuplot 5.4 script that writes the picture to its stdout.
#pragma once
#include <string>

#include "plot/figure.hpp"
#include "plot/theme.hpp"

namespace zs::plot {

enum class Format { png, svg, pdf };

/// The script, data included. Names are written literally, whatever characters they hold.
std::string script(const Figure& figure, const Theme& theme, Format format);

}  // namespace zs::plot

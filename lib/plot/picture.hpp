// SPDX-License-Identifier: Apache-2.0
// A figure as the bytes of a picture file.
#pragma once
#include <optional>
#include <string>

#include "plot/figure.hpp"
#include "plot/script.hpp"
#include "plot/theme.hpp"

namespace zs::plot {

/// The format that a file's name asks for (.png, .svg, .pdf, in any case), or nothing.
std::optional<Format> format_of(const std::string& path);

/// Draws with gnuplot and checks that the whole picture came. Throws Error otherwise.
std::string picture(const Figure& figure, const Theme& theme, Format format);

}  // namespace zs::plot

// SPDX-License-Identifier: Apache-2.0
// A figure as the bytes of a picture file.
#pragma once
#include <optional>
#include <string>

#include "figure/figure.hpp"
#include "figure/script.hpp"
#include "figure/theme.hpp"

namespace zs::figure {

/// The format that a file's name asks for (.png, .svg, .pdf, in any case), or nothing.
std::optional<Format> format_of(const std::string& path);

/// PNG and PDF are drawn with gnuplot. Throws Error where the whole picture did not come.
std::string picture(const Figure& figure, const Theme& theme, Format format);

}  // namespace zs::figure

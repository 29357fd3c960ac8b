// SPDX-License-Identifier: Apache-2.0
// A figure as the bytes of a picture file.
#pragma once
#include <optional>
#include <string>

#include "figure/figure.hpp"
#include "figure/script.hpp"
#include "figure/theme.hpp"

namespace zs::figure {

/// The format of that name: png, svg, pdf.
std::optional<Format> format_named(const std::string& form);

/// gnuplot draws PNG and PDF. Throws Error if the picture is incomplete.
std::string picture(const Figure& figure, const Theme& theme, Format format);

}  // namespace zs::figure

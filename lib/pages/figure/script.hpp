// SPDX-License-Identifier: Apache-2.0
// Converts a scene to gnuplot commands; gnuplot has the fonts, PNG and PDF.
#pragma once
#include <string>

#include "figure/scene.hpp"

namespace zs::figure {

enum class Format { png, svg, pdf };

/// The commands that draw the scene as `format`, not svg, to gnuplot's stdout. Texts are never run as commands.
std::string script(const Scene& scene, const Theme& theme, Format format);

}  // namespace zs::figure

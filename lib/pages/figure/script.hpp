// SPDX-License-Identifier: Apache-2.0
// A scene as commands of gnuplot, which has the fonts, PNG and PDF.
#pragma once
#include <string>

#include "figure/scene.hpp"

namespace zs::figure {

enum class Format { png, svg, pdf };

/// The commands that draw the scene as `format`, not svg, to gnuplot's stdout. No text of a scene is taken for one.
std::string script(const Scene& scene, const Theme& theme, Format format);

}  // namespace zs::figure

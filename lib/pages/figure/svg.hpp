// SPDX-License-Identifier: Apache-2.0
// Converts a scene to SVG: inside a page, whose CSS has the theme's colours, or as a separate file.
#pragma once
#include <string>

#include "figure/scene.hpp"

namespace zs::figure {

/// An <svg class="CLASS"> element with colours from the page's variables (theme.hpp), with `title` as its accessible
/// name.
std::string svg_element(const Scene& scene, const Theme& theme, const std::string& title, const std::string& classes);

/// A separate file with the theme's colours.
std::string svg_file(const Scene& scene, const Theme& theme, const std::string& title);

/// Text as XML content or attribute value. Control characters are removed.
std::string escaped(const std::string& text);

}  // namespace zs::figure

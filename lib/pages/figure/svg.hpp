// SPDX-License-Identifier: Apache-2.0
// A scene as SVG: inside of a page, whose CSS has the theme's colours, or as a file that stands alone.
#pragma once
#include <string>

#include "figure/scene.hpp"

namespace zs::figure {

/// An <svg class="CLASS"> element with colours from the page's variables (theme.hpp), named `title` for those who do
/// not see it.
std::string svg_element(const Scene& scene, const Theme& theme, const std::string& title, const std::string& classes);

/// A file, as the theme has it.
std::string svg_file(const Scene& scene, const Theme& theme, const std::string& title);

/// Text as XML content or attribute value. Control characters are left out.
std::string escaped(const std::string& text);

}  // namespace zs::figure

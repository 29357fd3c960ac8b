// SPDX-License-Identifier: Apache-2.0
// A figure as the bytes of a picture file.
#pragma once
#include <optional>
#include <string>

#include "figure/figure.hpp"
#include "figure/scene.hpp"
#include "figure/theme.hpp"

namespace zs::figure {

enum class Format { png, svg, pdf };

/// The format of that name: png, svg, pdf.
std::optional<Format> format_named(const std::string& form);

/// gnuplot draws PNG and PDF. Throws Error if the picture is incomplete.
std::string picture(const Figure& figure, const Theme& theme, Format format);

// Runs gnuplot on a script and returns the picture.

/// The bytes of the picture that `script` draws on its stdout. Throws Error if gnuplot is not installed (naming the
/// package), if it fails (with its message), or if it draws nothing. Leaves nothing on disk.
std::string run_gnuplot(const std::string& script);

// Converts a scene to gnuplot commands; gnuplot has the fonts, PNG and PDF.

/// The commands that draw the scene as `format`, not svg, to gnuplot's stdout. Texts are never run as commands.
std::string script(const Scene& scene, const Theme& theme, Format format);

}  // namespace zs::figure

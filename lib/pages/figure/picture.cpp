// SPDX-License-Identifier: Apache-2.0
#include "figure/picture.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "figure/gnuplot.hpp"
#include "figure/svg.hpp"

namespace zs::figure {

std::optional<Format> format_named(const std::string& form) {
  if (form == "png") return Format::png;
  if (form == "svg") return Format::svg;
  if (form == "pdf") return Format::pdf;
  return {};
}

std::string picture(const Figure& figure, const Theme& theme, Format format) {
  const Scene drawn = scene(figure, theme);
  if (format == Format::svg) return svg_file(drawn, theme, drawable(figure).title);
  std::string bytes = run_gnuplot(script(drawn, theme, format));
  // How each format ends: a picture cut short (a full disk, a killed gnuplot) must not pass.
  const std::string tail = bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 64));
  const bool whole = format == Format::png ? bytes.starts_with("\x89PNG") && tail.find("IEND") != std::string::npos
                                           : bytes.starts_with("%PDF") && tail.find("%%EOF") != std::string::npos;
  if (!whole) throw Error("gnuplot drew an incomplete picture (is the temporary folder full?)");
  return bytes;
}

}  // namespace zs::figure

// SPDX-License-Identifier: Apache-2.0
#include "figure/curves_json.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/number.hpp"

namespace zs::figure {
namespace {

bool same_values(const Series& a, const Series& b) {
  const auto bits = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  };
  return std::equal(a.x.begin(), a.x.end(), b.x.begin(), b.x.end(), bits) &&
         std::equal(a.y.begin(), a.y.end(), b.y.begin(), b.y.end(), bits) &&
         std::equal(a.raw.begin(), a.raw.end(), b.raw.begin(), b.raw.end(), bits);
}

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values)
    text += (text.empty() ? "" : ",") + (std::isfinite(value) ? zs::to_text(value) : "null");
  return "[" + text + "]";
}

std::string json_text(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    // '<' is written as an escape, so that no name can end the script element.
    if (c == '<')
      result += "\\u003c";
    else
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

}  // namespace

std::string curves_json(const Panel& panel, const Theme& theme) {
  std::string text;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const Series& series = panel.series[i];
    text += std::string(i ? "," : "") + "{\"name\":" + json_text(series.name) +
            ",\"colour\":" + json_text(css_colour(series.rest ? Ink(Ink::Role::grid) : series.colour, theme));
    std::size_t same = 0;
    while (same < i && !same_values(panel.series[same], series)) ++same;
    if (same < i && !series.x.empty())
      text += ",\"same\":" + std::to_string(same) + "}";
    else
      text += ",\"x\":" + numbers(series.x) + ",\"y\":" + numbers(series.raw.empty() ? series.y : series.raw) + "}";
  }
  return "{\"x\":" + json_text(panel.x_label) + ",\"series\":[" + text + "]}";
}

}  // namespace zs::figure

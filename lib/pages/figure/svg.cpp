// SPDX-License-Identifier: Apache-2.0
#include "figure/svg.hpp"

#include <fmt/format.h>
#include <array>

#include "base/number.hpp"

namespace zs::figure {
namespace {

/// A coordinate: a tenth of a unit is finer than anyone sees.
std::string at(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

using Colour = std::string (*)(const Ink&, const Theme&);

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

std::string path(const Mark& mark) {
  std::string text;
  for (const Point& point : mark.at) text += (text.empty() ? "M" : "L") + at(point.x) + " " + at(point.y);
  return text + (mark.shape == Mark::Shape::area ? "Z" : "");
}

std::string element(const Mark& mark, const std::string& colour, const std::string& paper) {
  const std::string opacity = mark.opacity < 1 ? attribute("opacity", zs::to_rounded_text(mark.opacity, 2)) : "";
  switch (mark.shape) {
    case Mark::Shape::line:
      return "<path" + attribute("d", path(mark)) + attribute("stroke", colour) +
             (mark.size == 1 ? "" : attribute("stroke-width", at(mark.size))) +
             (mark.dash > 0 ? attribute("stroke-dasharray", at(mark.dash) + " " + at(mark.gap)) : "") + opacity + "/>";
    case Mark::Shape::area:
      return "<path" + attribute("d", path(mark)) + attribute("fill", colour) + attribute("stroke", "none") + opacity +
             "/>";
    case Mark::Shape::dot:
      return "<circle" + attribute("cx", at(mark.at[0].x)) + attribute("cy", at(mark.at[0].y)) +
             attribute("r", at(mark.size)) + attribute("fill", colour) + attribute("stroke", "none") + "/>";
    default:
      break;
  }
  static constexpr std::array kAnchors = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  return "<text" + attribute("x", at(mark.at[0].x)) + attribute("y", at(mark.at[0].y + 4.5 * mark.size)) +
         kAnchors[static_cast<std::size_t>(mark.anchor)] + attribute("fill", colour) +
         (mark.size == 1 ? "" : attribute("font-size", at(13 * mark.size))) +
         (mark.bold ? attribute("font-weight", "600") : "") +
         (mark.halo ? attribute("paint-order", "stroke") + attribute("stroke-width", "4") + attribute("stroke", paper)
                    : attribute("stroke", "none")) +
         ">" + escaped(mark.text) + "</text>";
}

/// Data for a page's script to show values under the pointer.
std::string element(const Pointer& area) {
  return "<g class=\"pointer\"" + attribute("data-panel", std::to_string(area.panel)) +
         attribute("data-x0", at(area.x0)) + attribute("data-x1", at(area.x1)) +
         attribute("data-low", zs::to_text(area.low)) + attribute("data-high", zs::to_text(area.high)) +
         (area.log ? attribute("data-log", "1") : "") + "><path class=\"hair\"" +
         attribute("d", "M0 " + at(area.y0) + "V" + at(area.y1)) + "/><rect" + attribute("x", at(area.x0)) +
         attribute("y", at(area.y0)) + attribute("width", at(area.x1 - area.x0)) +
         attribute("height", at(area.y1 - area.y0)) + "/></g>";
}

std::string content(const Scene& scene, const Theme& theme, Colour colour) {
  std::string text;
  for (const Mark& mark : scene.marks)
    text += element(mark, colour(mark.ink, theme), colour(Ink::Role::paper, theme)) + "\n";
  return text;
}

std::string opening(const Scene& scene, const std::string& title) {
  return "<svg" + attribute("viewBox", "0 0 " + at(scene.width) + " " + at(scene.height)) + attribute("role", "img") +
         attribute("aria-label", escaped(title)) + attribute("fill", "none") + attribute("stroke-linejoin", "round");
}

}  // namespace

std::string svg_element(const Scene& scene, const Theme& theme, const std::string& title, const std::string& classes) {
  std::string text = opening(scene, title) + attribute("class", classes) + ">\n" + content(scene, theme, css_colour);
  for (const Pointer& area : scene.pointers) text += element(area) + "\n";
  return text + "</svg>\n";
}

std::string svg_file(const Scene& scene, const Theme& theme, const std::string& title) {
  const double unit = pixels(theme);
  return "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n" + opening(scene, title) +
         attribute("xmlns", "http://www.w3.org/2000/svg") + attribute("width", at(scene.width * unit)) +
         attribute("height", at(scene.height * unit)) + attribute("font-size", "13") +
         attribute("font-family", escaped(theme.font) + ", sans-serif") + ">\n<rect width=\"100%\" height=\"100%\"" +
         attribute("fill", theme.background) + "/>\n" + content(scene, theme, colour) + "</svg>\n";
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') result += c;
    }
  }
  return result;
}

}  // namespace zs::figure

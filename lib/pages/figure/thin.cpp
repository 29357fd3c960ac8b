// SPDX-License-Identifier: Apache-2.0
#include "figure/thin.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/number.hpp"
#include "figure/axis.hpp"

namespace zs::figure {
namespace {

constexpr std::size_t kFewPerColumn = 4;

/// Marks what of [begin, end) stays for one list of values.
void mark(const std::vector<double>& values, std::size_t begin, std::size_t end, std::vector<bool>& stays) {
  std::size_t least = begin, largest = begin;
  bool any = false;
  for (std::size_t i = begin; i < end; ++i) {
    if (!std::isfinite(values[i])) {
      stays[i] = true;
      if (i > 0) stays[i - 1] = true;
      if (i + 1 < values.size()) stays[i + 1] = true;
      continue;
    }
    if (!any || values[i] < values[least]) least = i;
    if (!any || values[i] > values[largest]) largest = i;
    any = true;
  }
  if (any) stays[least] = stays[largest] = true;
}

std::size_t thin(Series& series, const Range& range, bool log, std::size_t columns) {
  const std::size_t size = series.x.size();
  if (size <= kFewPerColumn * columns) return 0;
  const auto column = [&](double x) {
    const double at = log && x <= 0 ? 0 : share(x, range, log);
    return static_cast<std::size_t>(std::clamp(at, 0.0, 1.0) * static_cast<double>(columns));
  };
  std::vector<bool> stays(size, false);
  stays.front() = stays.back() = true;
  for (std::size_t begin = 0, end = 0; begin < size; begin = end) {
    while (end < size && column(series.x[end]) == column(series.x[begin])) ++end;
    stays[begin] = stays[end - 1] = true;
    for (const auto* const values : {&series.y, &series.raw, &series.low, &series.high}) {
      if (values->size() == size) mark(*values, begin, end, stays);
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (!stays[i]) continue;
    for (auto* const values : {&series.x, &series.y, &series.raw, &series.low, &series.high}) {
      if (values->size() == size) (*values)[kept] = (*values)[i];
    }
    ++kept;
  }
  for (auto* const values : {&series.y, &series.raw, &series.low, &series.high, &series.x}) {
    if (values->size() == size) values->resize(kept);
  }
  return size - kept;
}

}  // namespace

std::size_t thin(Panel& panel, std::size_t columns) {
  const Range range = x_range(panel);
  std::size_t gone = 0;
  for (Series& series : panel.series) gone += thin(series, range, panel.log_x, columns);
  return gone;
}

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

// SPDX-License-Identifier: Apache-2.0
#include "plot/axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/number.hpp"

namespace zs::plot {
namespace {

/// Start of code point `index`, or the size of the text.
std::size_t offset(const std::string& text, std::size_t index) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && index-- == 0) return i;
  }
  return text.size();
}

double nice_step(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= rough * 0.999) return step * power;
  }
  return 10 * power;
}

std::string decimal(double value, int decimals) {
  if (std::fabs(value) >= 1e7 || (value != 0 && std::fabs(value) < 1e-4)) return to_text(value);
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  return buffer.data();
}

std::vector<Tick> log_ticks(double low, double high) {
  std::vector<Tick> result;
  const bool dense = std::log10(high / low) < 2.5;
  for (int power = static_cast<int>(std::floor(std::log10(low))); power <= std::ceil(std::log10(high)); ++power) {
    for (const int lead : {1, 2, 5}) {
      const double at = lead * std::pow(10, power);
      if ((lead == 1 || dense) && at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)) {
        result.push_back({at, decimal(at, std::max(0, -power))});
      }
    }
  }
  return result;
}

}  // namespace

std::vector<Tick> ticks(double low, double high, int count, bool log) {
  if (log && high > 8 * low) {  // within less than a decade round steps read better
    std::vector<Tick> result = log_ticks(low, high);
    if (result.size() >= 2) return result;
  }
  if (low == high) return {{low, to_text(low)}};
  const double step = nice_step((high - low) / std::max(count, 1));
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
  std::vector<Tick> result;
  for (double index = std::ceil(low / step - 1e-9); index * step <= high + step * 1e-9; ++index) {
    const double at = index == 0 ? 0 : index * step;
    result.push_back({at, decimal(at, decimals)});
  }
  return result;
}

std::vector<Tick> x_ticks(const Panel& panel, const Range& range, int count) {
  if (panel.x_ticks.empty()) return ticks(range.low, range.high, count, panel.log_x);
  std::vector<Tick> result;
  for (const double at : panel.x_ticks) result.push_back({at, to_text(at)});
  return result;
}

double bar_reach(const Bar& bar) {
  double reach = std::max(bar.from, bar.value);
  if (std::isfinite(bar.high)) reach = std::max(reach, bar.high);
  for (const double dot : bar.dots) reach = std::max(reach, dot);
  return reach;
}

BarAxis bar_axis(const Panel& panel, double char_width, double width) {
  const Range range = x_range(panel);
  if (range.empty()) return {};
  BarAxis axis;
  axis.low = panel.boxes ? range.low - 0.03 * (range.high - range.low) : std::min(0.0, range.low);
  axis.high = range.high;
  for (const Bar& bar : panel.bars) {
    const double reach = std::isfinite(bar.value) ? bar_reach(bar) : axis.low;
    const double room = (static_cast<double>(length(bar.label)) * char_width + 20) / width;
    axis.high = std::max(axis.high, axis.low + (reach - axis.low) / std::max(0.2, 1 - room));
  }
  if (!(axis.low < axis.high)) axis.high = axis.low + 1;
  return axis;
}

std::size_t length(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string shortened(const std::string& text, std::size_t width) {
  const std::size_t size = length(text);
  if (size <= width) return text;
  if (width <= 4) return text.substr(0, offset(text, width));
  const std::size_t head = (width - 3 + 1) / 2, tail = width - 3 - head;
  return text.substr(0, offset(text, head)) + "..." + text.substr(offset(text, size - tail));
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::istringstream words(text);
  std::vector<std::string> lines;
  std::string word;
  while (words >> word) {
    if (!lines.empty() && length(lines.back()) + 1 + length(word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

}  // namespace zs::plot

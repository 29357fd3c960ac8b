// SPDX-License-Identifier: Apache-2.0
#include "figure/axis.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zs::figure {
namespace {

/// "1.5e-6": the shortest digits, and an exponent without leading zeros.
std::string exponent(double value) {
  const int power = static_cast<int>(std::floor(std::log10(std::fabs(value)) + 1e-12));
  return fmt::format("{:.12g}e{}", value * std::pow(10.0, -power), power);
}

/// Without what a multiplication added in the 17th digit.
double rounded(double value) { return std::strtod(fmt::format("{:.12g}", value).c_str(), nullptr); }

double nice_step(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= rough * 0.999) return step * power;
  }
  return 10 * power;
}

/// `value`, a multiple of 10^-decimals, with just the digits that it has.
std::string decimal(double value, int decimals) {
  if (std::fabs(value) >= 1e7 || (value != 0 && std::fabs(value) < 1e-4)) {
    const int digits = static_cast<int>(std::floor(std::log10(std::fabs(value)))) + decimals;
    const std::string text = fmt::format("{:.{}e}", value, std::clamp(digits, 0, 16));
    return to_text(std::strtod(text.c_str(), nullptr));  // without what a multiplication added in the 17th digit
  }
  return fmt::format("{:.{}f}", value, decimals);
}

/// The step between decades with a tick, so that `decades` decades get about `count` ticks.
int stride(double decades, int count) {
  const double rough = decades / (2 * std::max(count, 4));
  for (const int step : {1, 2, 5, 10, 20, 50}) {
    if (rough <= step) return step;
  }
  return 100;  // a double has fewer than 633 decades
}

/// Uses one form for all if some of them have an exponent or are long.
void relabel(std::vector<Tick>& ticks) {
  std::vector<double> values;
  bool needed = false;
  for (const Tick& tick : ticks) {
    values.push_back(tick.at);
    needed = needed || tick.label.find('e') != std::string::npos || std::fabs(tick.at) >= 1e7;
  }
  if (!needed || (!values.empty() && std::fabs(values.back()) > 1e90)) return;
  const std::vector<std::string> texts = labels(values);
  for (std::size_t i = 0; i < texts.size(); ++i) ticks[i].label = texts[i];
}

std::vector<Tick> log_ticks(double low, double high, int count) {
  std::vector<Tick> result;
  const double decades = std::log10(high) - std::log10(low);  // high / low may be too large for a double
  const bool dense = decades < 2.5;
  const int step = stride(decades, count), last = static_cast<int>(std::ceil(std::log10(high)));
  const int first = static_cast<int>(std::floor(std::log10(low) / step)) * step;
  for (int power = first; power <= last; power += step) {
    for (const int lead : {1, 2, 5}) {
      const double at = lead * std::pow(10, power);
      if ((lead == 1 || dense) && at > 0 && at >= low * (1 - 1e-9) && at / (1 + 1e-9) <= high) {
        result.push_back({at, decimal(at, std::max(0, -power))});
      }
    }
  }
  relabel(result);
  return result;
}

}  // namespace

std::vector<Tick> ticks(double low, double high, int count, bool log, bool whole) {
  if (log && high / 8 > low) {  // within less than a decade round steps read better
    std::vector<Tick> result = log_ticks(low, high, count);
    if (result.size() >= 2) return result;
  }
  if (Range{low, high}.flat()) return {{low, to_text(low)}};
  const int most = std::max(count, 1);
  const double rough = nice_step(high / most - low / most), step = whole ? std::max(1.0, rough) : rough;
  if (!(step > 0 && std::isfinite(step))) return {{low, to_text(low)}, {high, to_text(high)}};  // at an end of doubles
  const int decimals = static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  const double first = std::ceil(low / step - 1e-9);  // exact, and so is first + i: the range is not flat
  std::vector<Tick> result;
  for (int i = 0; i <= most + 1; ++i) {  // a step is hardly less than a share of the range
    const double at = first + i == 0 ? 0 : (first + i) * step;
    if (!(at <= high + step * 1e-9)) break;
    result.push_back({at, decimal(at, std::max(0, decimals))});
  }
  relabel(result);
  return result;
}

std::vector<std::string> labels(const std::vector<double>& values) {
  double smallest = HUGE_VAL, largest = 0;
  for (const double value : values) {
    if (value == 0 || !std::isfinite(value)) continue;
    smallest = std::min(smallest, std::fabs(value)), largest = std::max(largest, std::fabs(value));
  }
  const auto [factor, suffix] = largest >= 1e13   ? std::pair{1.0, ""}
                                : largest >= 1e10 ? std::pair{1e9, " G"}
                                : largest >= 1e7  ? std::pair{1e6, " M"}
                                                  : std::pair{1.0, ""};
  const bool plain = largest / factor < 1e7 && (largest == 0 || smallest / factor >= 1e-5);
  std::vector<std::string> texts;
  for (const double value : values) {
    if (value == 0 || !std::isfinite(value))
      texts.push_back(to_text(value));
    else if (plain)
      texts.push_back(to_plain_text(rounded(value / factor)) + suffix);
    else
      texts.push_back(exponent(value));
  }
  return texts;
}

std::vector<std::string> labels(const std::vector<std::string>& words) {
  std::vector<double> values;
  for (const std::string& word : words) {
    const auto value = parse_real(word);
    if (!value) return words;
    values.push_back(*value);
  }
  return labels(values);
}

double share(double value, const Range& range, bool log) {
  if (range.flat()) return 0.5;
  if (!log) return (value - range.low) / (range.high - range.low);
  return (std::log(value) - std::log(range.low)) / (std::log(range.high) - std::log(range.low));
}

namespace {

bool whole(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return !std::isfinite(value) || value == std::floor(value); });
}

}  // namespace

std::vector<Tick> fitting(double width, double pitch, const std::function<std::vector<Tick>(int count)>& make) {
  std::vector<Tick> made;
  for (int count = std::max(2, static_cast<int>(width / pitch)); count > 0; --count) {
    made = make(count);
    std::size_t longest = 0;
    for (const Tick& tick : made) longest = std::max(longest, characters(tick.label));
    if (static_cast<double>(made.size()) * (static_cast<double>(longest) + 1) * kChar <= width) break;
  }
  return made;
}

std::vector<Tick> y_ticks(const Panel& panel, const Range& range, int count) {
  const bool counts =
      std::ranges::all_of(panel.series, [](const Series& series) {  // a band's middle may be between two
        return series.low.empty() ? whole(series.y) : whole(series.low) && whole(series.high);
      });
  return ticks(range.low, range.high, count, panel.log_y, counts);
}

std::vector<Tick> x_ticks(const Panel& panel, const Range& range, int count) {
  if (panel.x_ticks.empty()) {
    const bool counts = std::ranges::all_of(panel.series, [](const Series& series) { return whole(series.x); });
    return ticks(range.low, range.high, count, panel.log_x, counts);
  }
  std::vector<Tick> result;
  const std::vector<std::string> texts = labels(panel.x_ticks);
  for (std::size_t i = 0; i < texts.size(); ++i) result.push_back({panel.x_ticks[i], texts[i]});
  return result;
}

double bar_reach(const Bar& bar) {
  double reach = std::max(bar.from, bar.value);
  if (std::isfinite(bar.high)) reach = std::max(reach, bar.high);
  for (const double dot : bar.dots) reach = std::max(reach, dot);
  return reach;
}

std::string shortened(const std::string& text, std::size_t width) {
  const std::size_t size = characters(text);
  if (size <= width) return text;
  if (width <= 4) return std::string(first_characters(text, width));
  const std::size_t head = (width - 3 + 1) / 2, tail = width - 3 - head;
  const std::size_t before_tail = first_characters(text, size - tail).size();
  return std::string(first_characters(text, head)) + "..." + text.substr(before_tail);
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::istringstream words(text);
  std::vector<std::string> lines;
  std::string word;
  while (words >> word) {
    if (!lines.empty() && characters(lines.back()) + 1 + characters(word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

}  // namespace zs::figure

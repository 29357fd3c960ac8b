// SPDX-License-Identifier: Apache-2.0
#include "plot/figure.hpp"

#include <algorithm>
#include <cmath>

namespace zs::plot {
namespace {

/// What a logarithmic axis shows of each y; NaN where that is nothing.
Series on_log_axis(Series series) {
  for (double& y : series.y) y = y > 0 ? std::log(y) : kNone;
  series.low.clear(), series.high.clear();
  return series;
}

/// True if `a` and `b` share at least half of the shorter one's x and differ there by at most `limit`.
bool coincide(const Series& a, const Series& b, double limit) {
  std::size_t i = 0, j = 0, shared = 0;
  while (i < a.x.size() && j < b.x.size()) {
    if (a.x[i] < b.x[j]) {
      ++i;
    } else if (b.x[j] < a.x[i]) {
      ++j;
    } else {
      const bool finite = std::isfinite(a.y[i]) && std::isfinite(b.y[j]);
      if (finite ? !(std::abs(a.y[i] - b.y[j]) <= limit) : std::isfinite(a.y[i]) != std::isfinite(b.y[j])) return false;
      ++i, ++j, ++shared;
    }
  }
  return shared > 0 && 2 * shared >= std::min(a.x.size(), b.x.size());
}

}  // namespace

void stripe_coinciding(std::vector<Series>& series, double tolerance, bool log) {
  Panel panel;
  for (const Series& one : series) panel.series.push_back(log ? on_log_axis(one) : one);
  const Range range = y_range(panel);
  const double limit = range.empty() ? 0 : tolerance * (range.high - range.low);
  std::vector<bool> taken(series.size(), false);
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (taken[i] || series[i].x.empty()) continue;
    std::vector<std::size_t> group = {i};
    for (std::size_t j = i + 1; j < series.size(); ++j) {
      if (taken[j] || !coincide(panel.series[i], panel.series[j], limit)) continue;
      group.push_back(j);
      taken[j] = true;
    }
    for (std::size_t k = 0; k < group.size(); ++k) {
      series[group[k]].layer = k;
      series[group[k]].layers = group.size();
    }
  }
}

void Range::include(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

Range x_range(const Panel& panel) {
  Range range;
  for (const Series& series : panel.series) {
    for (const double x : series.x) range.include(x);
  }
  for (const Bar& bar : panel.bars) {
    if (!panel.boxes)
      range.include(0);
    else if (std::isfinite(bar.value))
      range.include(bar.from);
    for (const double value : {bar.value, bar.low, bar.high}) range.include(value);
    for (const double dot : bar.dots) range.include(dot);
  }
  return range;
}

Range y_range(const Panel& panel) {
  Range range;
  for (const Series& series : panel.series) {
    for (const auto* values : {&series.y, &series.low, &series.high}) {
      for (const double value : *values) {
        if (!panel.log_y || value > 0) range.include(value);
      }
    }
  }
  if (panel.from_zero && !range.empty()) range.include(0);
  return range;
}

Range y_axis(const Panel& panel) {
  Range range = y_range(panel);
  if (range.empty()) return range;
  if (panel.log_y) {
    const double margin = range.low < range.high ? std::pow(range.high / range.low, 0.03) : 1.1;
    return {range.low / margin, range.high * margin};
  }
  const double margin = range.low < range.high ? 0.04 * (range.high - range.low)
                        : range.high != 0      ? 0.01 * std::abs(range.high)
                                               : 1;
  const bool zero = panel.from_zero && range.low == 0;
  return {zero ? 0 : range.low - margin, range.high + margin};
}

}  // namespace zs::plot

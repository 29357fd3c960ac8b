// SPDX-License-Identifier: Apache-2.0
#include "figure/figure.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace zs::figure {
namespace {

/// The y that a logarithmic axis can show; NaN for the others.
Series on_log_axis(Series series) {
  for (double& y : series.y) y = y > 0 ? std::log(y) : kNone;
  series.raw.clear(), series.low.clear(), series.high.clear();
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

/// Divides the numbers of an axis by a power of ten if they are too large or small, and adds that to its label.
void scale(const std::vector<std::vector<double>*>& axis, std::string& label) {
  constexpr double kLarge = 1e100, kSmall = 1e-100;
  double largest = 0;
  for (const auto* const values : axis) {
    for (const double value : *values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
  }
  if (largest == 0 || (largest >= kSmall && largest <= kLarge)) return;
  const int power = static_cast<int>(std::floor(std::log10(largest)));
  const double half = std::pow(10, -power / 2), rest = std::pow(10, -power - -power / 2);  // 10^320 is too large
  for (auto* const values : axis) {
    for (double& value : *values) value = value * half * rest;
  }
  label += " / 1e" + std::to_string(power);
}

void scale(Panel& panel) {
  std::vector<std::vector<double>*> across, up;
  for (Series& series : panel.series) {
    across.push_back(&series.x);
    for (auto* const values : {&series.y, &series.raw, &series.low, &series.high}) up.push_back(values);
  }
  if (!panel.log_x && panel.x_ticks.empty()) scale(across, panel.x_label);
  if (!panel.log_y) scale(up, panel.y_label);
  std::vector<double> single;
  for (const Bar& bar : panel.bars) single.insert(single.end(), {bar.value, bar.low, bar.high, bar.inner, bar.from});
  std::vector<std::vector<double>*> values = {&single};
  for (Bar& bar : panel.bars) values.push_back(&bar.dots);
  scale(values, panel.x_label);
  auto next = single.begin();
  for (Bar& bar : panel.bars) {
    for (double* const value : {&bar.value, &bar.low, &bar.high, &bar.inner, &bar.from}) *value = *next++;
  }
}

}  // namespace

void stripe_coinciding(std::vector<Series>& series, double tolerance, bool log) {
  Panel panel;
  for (const Series& one : series) panel.series.push_back(log ? on_log_axis(one) : one);
  const Range range = y_range(panel);
  const double limit = range.empty() ? 0 : tolerance * range.high - tolerance * range.low;
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
      series[group[k]].under = i;
    }
  }
}

Figure drawable(Figure figure) {
  const auto clean = [](std::string& text) { text = printable(text); };
  clean(figure.title);
  for (Panel& panel : figure.panels) {
    for (std::string* const text : {&panel.title, &panel.x_label, &panel.y_label}) clean(*text);
    for (auto* const texts : {&panel.columns, &panel.rows, &panel.notes})
      std::for_each(texts->begin(), texts->end(), clean);
    for (Series& series : panel.series) clean(series.name), clean(series.note);
    for (Bar& bar : panel.bars) clean(bar.name), clean(bar.label);
    for (Cell& cell : panel.cells) clean(cell.label);
    scale(panel);
  }
  return figure;
}

void Range::include(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

bool Range::flat() const { return !(high - low > 1e-12 * std::max(std::abs(low), std::abs(high))); }

Range x_range(const Panel& panel) {
  Range range;
  const auto include = [&](double value) {
    if (!panel.log_x || value > 0) range.include(value);
  };
  for (const Series& series : panel.series) std::for_each(series.x.begin(), series.x.end(), include);
  for (const Bar& bar : panel.bars) {
    if (panel.style == Panel::Style::bars) include(0);
    if (panel.style == Panel::Style::boxes && std::isfinite(bar.value)) include(bar.from);
    for (const double value : {bar.value, bar.low, bar.high}) include(value);
    std::for_each(bar.dots.begin(), bar.dots.end(), include);
  }
  for (const double value : {panel.reference, panel.shade_low, panel.shade_high}) include(value);
  if (panel.x_from_zero && !panel.log_x && !range.empty()) range.include(0);
  return range;
}

Range y_range(const Panel& panel) {
  Range range;
  for (const Series& series : panel.series) {
    for (const auto* values : {&series.y, &series.raw, &series.low, &series.high}) {
      for (const double value : *values) {
        if (!panel.log_y || value > 0) range.include(value);
      }
    }
  }
  if (panel.from_zero && !range.empty()) range.include(0);
  if (!range.empty() && !is_map(panel)) range.include(panel.reference);
  return range;
}

Range y_axis(const Panel& panel) {
  Range range = y_range(panel);
  if (range.empty()) return range;
  if (panel.log_y) {
    const double margin = range.flat() ? 0.1 : 0.03 * (std::log(range.high) - std::log(range.low));
    using Limits = std::numeric_limits<double>;
    return {std::max(range.low * std::exp(-margin), Limits::denorm_min()),
            std::min(range.high * std::exp(margin), Limits::max())};
  }
  const double margin = !range.flat()     ? 0.04 * (range.high - range.low)
                        : range.high != 0 ? 0.01 * std::abs(range.high)
                                          : 1;
  const bool zero = panel.from_zero && range.low == 0;
  return {zero ? 0 : range.low - margin, range.high + margin};
}

}  // namespace zs::figure

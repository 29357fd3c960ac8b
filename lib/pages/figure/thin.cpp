// SPDX-License-Identifier: Apache-2.0
#include "figure/thin.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace zs::figure

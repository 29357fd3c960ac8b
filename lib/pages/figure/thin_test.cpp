// SPDX-License-Identifier: Apache-2.0
#include "figure/thin.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace zs::figure {
namespace {

/// A long curve with a peak, a hollow and a nan, each of one point.
Panel long_panel(std::size_t size, bool log) {
  Panel panel;
  panel.log_x = log;
  Series series;
  for (std::size_t i = 0; i < size; ++i) {
    series.x.push_back(static_cast<double>(i + 1));
    series.y.push_back(i == size / 2       ? 90
                       : i == size / 2 + 1 ? -90
                       : i == size / 3     ? kNone
                                           : std::sin(0.1 * static_cast<double>(i)));
  }
  panel.series.push_back(series);
  return panel;
}

bool has(const Series& series, double x) { return std::binary_search(series.x.begin(), series.x.end(), x); }

}  // namespace

TEST_CASE("thinning keeps the extremes, what is not finite, and both ends") {
  for (const bool log : {false, true}) {
    constexpr std::size_t kSize = 100'000;
    Panel panel = long_panel(kSize, log);
    const Range before = y_range(panel);
    CHECK(thin(panel) > kSize / 2);
    const Series& series = panel.series[0];
    CHECK(series.x.size() == series.y.size());
    CHECK(series.x.size() < 8000);
    CHECK(y_range(panel).low == before.low);
    CHECK(y_range(panel).high == before.high);
    for (const std::size_t place : {std::size_t{0}, kSize / 3 - 1, kSize / 3, kSize / 3 + 1, kSize / 2, kSize - 1})
      CHECK(has(series, static_cast<double>(place + 1)));
    CHECK(std::count_if(series.y.begin(), series.y.end(), [](double y) { return std::isnan(y); }) == 1);
    CHECK(std::is_sorted(series.x.begin(), series.x.end()));
  }
}

TEST_CASE("each column of a thinned curve reaches as far up and down as it did") {
  const Panel full = long_panel(50'000, false);
  Panel panel = full;
  thin(panel, 100);
  const auto reach = [](const Series& series, double from, double to) {
    Range range;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (series.x[i] >= from && series.x[i] < to) range.include(series.y[i]);
    }
    return range;
  };
  const double width = 49'999.0 / 100;
  for (int column = 0; column < 100; ++column) {
    const double from = 1 + column * width;
    const Range a = reach(full.series[0], from, from + width), b = reach(panel.series[0], from, from + width);
    CHECK(a.low == b.low);
    CHECK(a.high == b.high);
  }
}

TEST_CASE("a short curve stays as it is, and bands and faint lines go with their curve") {
  Panel small = long_panel(3000, false);
  CHECK(thin(small) == 0);
  CHECK(small.series[0].x.size() == 3000);
  Panel panel = long_panel(20'000, false);
  Series& series = panel.series[0];
  series.raw = series.low = series.high = series.y;
  series.raw[777] = 1000;
  thin(panel);
  CHECK(series.raw.size() == series.x.size());
  CHECK(series.low.size() == series.x.size());
  CHECK(*std::max_element(series.raw.begin(), series.raw.end(),
                          [](double a, double b) { return !(a >= b) && !std::isnan(b); }) == 1000);
}

}  // namespace zs::figure

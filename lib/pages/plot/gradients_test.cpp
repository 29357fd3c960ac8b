// SPDX-License-Identifier: Apache-2.0
#include "plot/gradients.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace zs::plot {
namespace {

/// A history of `blocks` blocks between an embedding and a head, one tensor of one value each:
/// norms[checkpoint](layer).
gradient::History made(std::size_t blocks, const std::vector<std::vector<float>>& values) {
  gradient::History history;
  history.subject = "made";
  history.names.push_back("wte.w");
  for (std::size_t i = 0; i < blocks; ++i) history.names.push_back("h." + std::to_string(i) + ".w");
  history.names.push_back("head.w");
  history.layers = gradient::layers(history.names);
  history.by_step = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    gradient::Checkpoint checkpoint;
    checkpoint.source.step = static_cast<std::int64_t>(10 * (i + 1));
    for (std::size_t layer = 0; layer < history.layers.size(); ++layer) {
      gradient::Measure measure;
      measure.add(std::vector<float>{values[i][layer]});
      checkpoint.layers.push_back(measure);
      checkpoint.layer_dots.push_back(i ? static_cast<double>(values[i][layer]) * values[i - 1][layer] : 0);
    }
    history.checkpoints.push_back(checkpoint);
  }
  return history;
}

}  // namespace

TEST_CASE("gradients: bars are the last checkpoint, their lines the range, curves all of them") {
  const Figure figure = gradient_figure(made(2, {{1, 2, 3, 4}, {4, 2, 1, 0.5F}, {2, 2, 2, 2}}));
  CHECK(figure.title == "Gradients of made");
  REQUIRE(figure.panels.size() == 2);
  const Panel& bars = figure.panels[0];
  CHECK(bars.title == "At step 30");
  REQUIRE(bars.bars.size() == 4);
  CHECK(bars.bars[1].name == "h.0");
  CHECK(bars.bars[0].value == 2);
  CHECK(bars.bars[0].low == 1);
  CHECK(bars.bars[3].high == 4);
  CHECK(bars.bars[3].label == "2.000");
  const Panel& curves = figure.panels[1];
  REQUIRE(curves.series.size() == 4);
  CHECK(curves.series[3].name == "head");
  CHECK(curves.series[3].x == std::vector<double>{10, 20, 30});
  CHECK(curves.series[3].y == std::vector<double>{4, 0.5, 2});
  CHECK(curves.log_y);
  CHECK(gradient_figure(made(2, {{1, 2, 3, 4}})).panels.size() == 1);
  CHECK_THROWS_AS(gradient_figure(gradient::History()), Error);
}

TEST_CASE("gradients: of many layers some have curves, those with findings among them") {
  std::vector<float> values(42, 1);
  CHECK(shown_layers(made(40, {values})).size() == 8);
  const std::vector<std::size_t> shown = shown_layers(made(40, {values}));
  for (const std::size_t layer : {0, 1, 40, 41}) CHECK(std::count(shown.begin(), shown.end(), layer) == 1);
  values[17] = 1e-6F;
  const std::vector<std::size_t> with = shown_layers(made(40, {values}));
  CHECK(std::count(with.begin(), with.end(), 17) == 1);
  CHECK(with.size() <= 8);
  for (int layer = 1; layer <= 20; ++layer) values[static_cast<std::size_t>(layer)] = 0;
  values[30] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::size_t> many = shown_layers(made(40, {values}));
  CHECK(many.size() == 8);
  CHECK(std::count(many.begin(), many.end(), 30) == 1);  // the worst first
  CHECK(shown_layers(made(1, {{1, 1, 1}})) == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("gradients: what a logarithmic axis cannot show is said, and what is wrong is in the legend") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Figure figure = gradient_figure(made(3, {{1, 1, 1, 1, 1}, {1, 0, nan, 1, 1000000}}));
  CHECK(figure.panels[0].bars[1].label == "0  zero");
  CHECK(figure.panels[0].bars[2].label == "1 nan");
  CHECK_FALSE(std::isfinite(figure.panels[0].bars[2].value));
  CHECK(figure.panels[0].bars[4].failed);
  const Panel& curves = figure.panels[1];
  CHECK(curves.series[1].note == "zero");
  CHECK(curves.series[2].note == "not finite");
  CHECK(curves.series[4].note == "exploding");
  CHECK(curves.notes.front() == "h.0: zero at 1 checkpoint, which a logarithmic axis cannot show");
}

TEST_CASE("gradients: curves are striped where they coincide on the axis that is drawn") {
  // Of a range of 1000 the smaller ones are within 0.4 %, but a decade apart on a logarithmic axis.
  const Panel curves = gradient_figure(made(2, {{0.1F, 1000, 1, 1}, {0.1F, 1000, 1, 1}})).panels[1];
  CHECK(curves.series[0].layers == 1);
  CHECK(curves.series[1].layers == 1);
  CHECK(curves.series[2].layers == 2);
  CHECK(curves.series[3].layer == 1);
  const Panel cosines = cosine_figure(made(2, {{1, 1, 1, 1}, {-1, 1, 1, 0}})).panels[0];
  REQUIRE(cosines.series[0].x == std::vector<double>{20});
  CHECK(cosines.series[0].y == std::vector<double>{-1});
  CHECK(std::isnan(cosines.series[3].y[0]));
  CHECK(cosines.series[1].layers == 2);
}

}  // namespace zs::plot

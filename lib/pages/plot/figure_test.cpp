// SPDX-License-Identifier: Apache-2.0
#include "figure/figure.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "figure/axis.hpp"
#include "plot/curve.hpp"
#include "plot/figures.hpp"
#include "plot/sample_test.hpp"
#include "summary/unit.hpp"

namespace zs::plot {

using namespace figure;  // its tests too

TEST_CASE("curves that lie on one another are striped, others are not") {
  std::vector<Series> series(4);
  for (Series& one : series) one.x = {1, 2, 3, 4};
  series[0].y = series[2].y = {4, 3, 2, 1};
  series[1].y = {4, 3, 2, 2};
  series[3].y = {4, 3, 2, 1.001};  // closer than the eye can see
  stripe_coinciding(series);
  CHECK(series[0].layers == 3);
  CHECK(series[0].layer == 0);
  CHECK(series[2].layer == 1);
  CHECK(series[3].layer == 2);
  CHECK(series[1].layers == 1);
}

TEST_CASE("a curve that ended early stripes with the one it followed; a nan beside a number does not") {
  std::vector<Series> series(2);
  series[0].x = {1, 2, 3, 4};
  series[0].y = {4, 3, 2, 1};
  series[1].x = {1, 2};
  series[1].y = {4, 3};
  stripe_coinciding(series);
  CHECK(series[1].layers == 2);
  series[1].y = {4, kNone};
  series[0].layers = series[1].layers = 1;
  stripe_coinciding(series);
  CHECK(series[1].layers == 1);
}

TEST_CASE("the loss figure says that identical conditions are identical, and only then") {
  Sample sample;
  metric::Store store = sample_batch(sample);
  Figure figure = loss_figure(summary::conditions(store, "s"));
  REQUIRE(figure.panels[0].notes.size() == 1);
  CHECK(figure.panels[0].notes[0] ==
        "6 conditions, identical to the last bit (state digest f3a1c09b5d7e42886b0c9d1f2e3a4b5c)");
  CHECK(figure.panels[0].series[5].layers == 6);

  sample.digests = false;
  store = sample_batch(sample);
  figure = loss_figure(summary::conditions(store, "s"));
  CHECK(figure.panels[0].notes[0] == "6 conditions with the same loss at every logged step");

  for (metric::Column& column : store.curves["z3_baseline"].columns) {  // one that ended early
    if (column.type() == metric::Type::integer)
      column.integers().resize(60);
    else
      column.reals().resize(60);
  }
  figure = loss_figure(summary::conditions(store, "s"));
  CHECK(figure.panels[0].notes[0] == "6 conditions with the same loss at every step they share");

  store.curves["z2_baseline"].find("loss")->reals()[50] += 1e-9;  // seen by no eye, but not the same
  figure = loss_figure(summary::conditions(store, "s"));
  CHECK(figure.panels[0].notes[0] == "striped lines: 6 curves too close to tell apart, but not known to be equal");
}

TEST_CASE("two trainings of three conditions each: the loss figure says what is known within each") {
  metric::Store store = sample_batch({});
  const auto ends_with = [&](const std::string& condition, char digit) {
    std::vector<std::string>& digests = store.summary->find("state_digest")->texts();
    const std::vector<std::string>& names = store.summary->find("condition")->texts();
    for (std::size_t row = 0; row < names.size(); ++row) {
      if (names[row] == condition) digests[row] = std::string(32, digit);
    }
  };
  for (const char* const name : {"z1_deepcompile", "z2_deepcompile", "z3_deepcompile"}) {
    for (double& loss : store.curves[name].find("loss")->reals()) loss += 0.5;
    ends_with(name, '1');
  }
  const auto note = [&] { return loss_figure(summary::conditions(store, "s")).panels[0].notes[0]; };
  CHECK(note() == "striped lines: 2 groups of 3 curves with the same bits");
  ends_with("z1_deepcompile", '2');
  CHECK(note() == "striped lines: 2 groups of 3 curves with the same loss at every common step");
  store.curves["z1_deepcompile"].find("loss")->reals()[50] += 1e-9;
  CHECK(note() == "striped lines: 2 groups of 3 curves too close to tell apart, but not known to be equal");
}

TEST_CASE("a condition that failed is marked in every figure, also without a single value") {
  Sample sample;
  sample.failing = "z3_deepcompile";
  sample.absent = "z2_deepcompile";
  const metric::Store store = sample_batch(sample);
  const auto conditions = summary::conditions(store, "s");
  CHECK(loss_figure(conditions).panels[0].series[4].note == "FAILED, no loss");
  CHECK(loss_figure(conditions).panels[0].series[5].note == "FAILED");
  const Figure time = time_figure(conditions);
  CHECK(time.panels[0].bars[4].label == "FAILED");
  CHECK(time.panels[0].bars[4].failed);
  CHECK(memory_figure(conditions).panels[0].bars[5].label == "1.443 GB  FAILED");
}

TEST_CASE("one unit for a figure, by its largest value") {
  CHECK(summary::time_unit(0.123).text(0.0123) == "12.30 ms");
  CHECK(summary::time_unit(12).text(1.5) == "1.500 s");
  CHECK(summary::bytes_unit(3.4e9).text(3.1e8) == "0.3100 GB");
  CHECK(summary::bytes_unit(9.5e8).text(9.5e8) == "950.0 MB");
  CHECK(summary::bytes_unit(0).text(0) == "0.000 B");
}

TEST_CASE("ticks are round and within the range") {
  const auto labels = [](const std::vector<Tick>& ticks) {
    std::string text;
    for (const Tick& tick : ticks) text += tick.label + " ";
    return text;
  };
  CHECK(labels(ticks(0, 10, 5, false)) == "0 2 4 6 8 10 ");
  CHECK(labels(ticks(1.98, 2.31, 4, false)) == "2.0 2.1 2.2 2.3 ");
  CHECK(labels(ticks(-0.5, 0.5, 2, false)) == "-0.5 0.0 0.5 ");
  CHECK(labels(ticks(0.5, 30, 5, true)) == "0.5 1 2 5 10 20 ");
  CHECK(labels(ticks(3, 3, 5, false)) == "3 ");
}

TEST_CASE("text is cut and wrapped by characters, not by bytes") {
  CHECK(shortened("abcdefghij", 10) == "abcdefghij");
  CHECK(shortened("abcdefghijk", 9) == "abc...ijk");
  CHECK(shortened("äöüäöüäöüäöü", 9) == "äöü...äöü");
  CHECK(wrapped("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(characters("äö") == 2);
}

TEST_CASE("ticks of any range come to an end, and lie within it") {
  const double ulp = 5.000000000000001, huge = 1e308, tiny = 5e-324;
  const std::vector<std::pair<double, double>> ranges = {{5, ulp},          {5, 5},           {-huge, huge},
                                                         {0, huge},         {tiny, 3 * tiny}, {tiny, huge},
                                                         {1e17, 1e17 + 64}, {-1, 1},          {1e-9, 3e7}};
  for (const auto& [low, high] : ranges) {
    for (const bool log : {false, true}) {
      if (log && low <= 0) continue;
      for (const int count : {0, 1, 5, 200}) {
        const std::vector<Tick> found = ticks(low, high, count, log);
        CHECK(found.size() <= static_cast<std::size_t>(std::max(count, 4) * 3));
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(found[i].at >= low * (1 - 1e-9) - 1e-9 * high);
          CHECK(found[i].at / (1 + 1e-9) <= high);
          if (i > 0) CHECK(found[i - 1].at < found[i].at);
          if (i > 0) CHECK(found[i - 1].label != found[i].label);
        }
      }
    }
  }
}

TEST_CASE("a share of an axis is a share, also where high - low is nothing or high / low is no number") {
  CHECK(share(5, {5, 5.000000000000001}, false) == 0.5);
  CHECK(share(1e-320, {1e-320, 1e308}, true) == 0);
  CHECK(share(1e308, {1e-320, 1e308}, true) == 1);
}

TEST_CASE("numbers too large or small for an axis are divided by a power of ten, which its label names") {
  Figure figure{"t", {Panel()}};
  figure.panels[0].y_label = "loss";
  Series series;
  series.x = {1, 2, 3};
  series.y = {1e308, -1e308, std::numeric_limits<double>::infinity()};
  figure.panels[0].series = {series};
  Panel drawn = drawable(figure).panels[0];
  CHECK(drawn.y_label == "loss / 1e308");
  CHECK(drawn.series[0].y[0] == doctest::Approx(1));
  CHECK(drawn.series[0].y[1] == doctest::Approx(-1));
  CHECK(std::isinf(drawn.series[0].y[2]));
  CHECK(drawn.series[0].x == series.x);
  figure.panels[0].series[0].y = {1e-320, 2e-320, 0};
  drawn = drawable(figure).panels[0];
  CHECK(drawn.y_label == "loss / 1e-320");
  CHECK(drawn.series[0].y[1] == doctest::Approx(2).epsilon(0.01));
  figure.panels[0].series[0].y = {1, 2, 3};
  CHECK(drawable(figure).panels[0].y_label == "loss");
}

TEST_CASE("curves at both ends of the doubles are not said to coincide") {
  std::vector<Series> series(2);
  for (Series& one : series) one.x = {1, 2};
  series[0].y = {1e308, 1e308};
  series[1].y = {-1e308, -1e308};
  stripe_coinciding(series);
  CHECK(series[1].layers == 1);
}

TEST_CASE("a value has the places that its uncertainty means, and a column one number of decimals") {
  CHECK(summary::time_unit(0.2).measured(0.1999, 0.0141) == "200 ± 14 ms");
  CHECK(summary::time_unit(2).measured(1.3224, 0.149) == "1.32 ± 0.15 s");
  CHECK(summary::Unit{}.measured(0.397731, 0.000771) == "0.39773 ± 0.00077");
  CHECK(summary::Unit{}.measured(1341, 140.2) == "1340 ± 140");
  CHECK(summary::time_unit(2).measured(1.5, kNone) == "1.500 s");
  using Texts = std::vector<std::string>;
  CHECK(summary::column({10.5554, 9.852737, 3.911}, 7) == Texts{"10.55540", "9.85274", "3.91100"});
  CHECK(summary::column({1.5, 2, kNone}, 7) == Texts{"1.5", "2.0", "nan"});
  CHECK(summary::column({100, 20000}, 4) == Texts{"100", "20000"});
  CHECK(summary::column({0.1235, 0.0456}, 2) == Texts{"0.12", "0.05"});
}

TEST_CASE("smoothing keeps a value that is not finite, alone, and leaves its place") {
  std::vector<double> values(300, 1);
  values[150] = kNone;
  const std::vector<double> smooth = smoothed(values, 15);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::isfinite(smooth[i]) == (i != 150));
}

TEST_CASE("a number for people is in its unit, and never cut short") {
  CHECK(summary::time_unit(1e308).text(1e308) == "2.778e+304 h");
  CHECK(summary::time_unit(7200).text(7200) == "2.000 h");
  CHECK(summary::time_unit(300).text(450) == "7.500 min");
  CHECK(summary::time_unit(1e-320).number(1e-320, 3).find("e-") != std::string::npos);
  CHECK(summary::bytes_unit(1e6).text(1.5e6) == "1.500 MB");
}

}  // namespace zs::plot

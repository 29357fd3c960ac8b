// SPDX-License-Identifier: Apache-2.0
// Each thing that a figure may have, drawn by each renderer.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "figure/axis.hpp"
#include "figure/layout.hpp"
#include "figure/picture.hpp"
#include "figure/svg.hpp"
#include "figure/terminal.hpp"
#include "figure/theme.hpp"

namespace zs::figure {
namespace {

Figure of(Panel panel) { return {"title", {std::move(panel)}, 1}; }

std::size_t count(const std::string& text, const std::string& piece) {
  std::size_t found = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++found;
  return found;
}
bool has(const std::string& text, const std::string& piece) { return text.find(piece) != std::string::npos; }

std::string svg(const Figure& figure) { return svg_file(scene(figure, Shape{880}), Theme(), figure.title); }
std::string words(const Figure& figure) { return terminal_text(figure, Theme(), Screen{80, 24, false, false}); }

std::size_t marks(const Figure& figure, Mark::Shape shape, Ink ink) {
  const Scene drawn = scene(figure, Shape{880});
  return static_cast<std::size_t>(std::count_if(drawn.marks.begin(), drawn.marks.end(), [&](const Mark& mark) {
    return mark.shape == shape && mark.ink == ink;
  }));
}

Series line(const std::string& name, std::vector<double> y, Ink ink = {}) {
  Series series;
  series.name = name, series.colour = ink;
  for (std::size_t i = 0; i < y.size(); ++i) series.x.push_back(static_cast<double>(i + 1));
  series.y = std::move(y);
  return series;
}
Bar bar(const std::string& name, double value) {
  Bar made;
  made.name = name, made.value = value, made.label = "label of " + name;
  return made;
}

}  // namespace

TEST_CASE("figure: a curve is a line with its name, and a value that is not finite is a gap") {
  Panel panel;
  panel.x_label = "step", panel.y_label = "loss";
  panel.series = {line("whole", {3, 2, 1.5, 1.2}), line("gap", {3, 2, kNone, 1, 0.9}, Ink(1))};
  CHECK(marks(of(panel), Mark::Shape::line, Ink(0)) == 1);
  CHECK(marks(of(panel), Mark::Shape::line, Ink(1)) == 2);
  for (const char* const word : {"whole", "gap", "step", "loss"}) {
    CHECK(has(svg(of(panel)), word));
    CHECK(has(words(of(panel)), word));
  }
}

TEST_CASE("figure: a band lies around its curve") {
  Panel panel;
  Series series = line("band", {3, 2, 1});
  CHECK(marks(of(panel), Mark::Shape::area, Ink(0)) == 0);
  series.low = {2.5, 1.5, 0.5}, series.high = {3.5, 2.5, 1.5};
  panel.series = {series};
  CHECK(marks(of(panel), Mark::Shape::area, Ink(0)) == 2);  // and its key
  CHECK(y_range(panel).low == 0.5);
  CHECK(y_range(panel).high == 3.5);
}

TEST_CASE("figure: what a smoothed curve is made of lies faintly behind it") {
  Panel panel;
  panel.series = {line("smooth", {3, 2.5, 2})};
  panel.series[0].raw = {3, 2.9, 2};
  const Scene drawn = scene(of(panel), Shape{880});
  CHECK(std::any_of(drawn.marks.begin(), drawn.marks.end(),
                    [](const Mark& mark) { return mark.shape == Mark::Shape::line && mark.opacity < 0.5; }));
}

TEST_CASE("figure: curves on one another are striped") {
  Panel panel;
  panel.series = {line("a", {3, 2, 1}), line("b", {3, 2, 1}, Ink(1))};
  stripe_coinciding(panel.series);
  CHECK(has(svg(of(panel)), "stroke-dasharray"));
  panel.series[1].y[1] = 1.2;
  panel.series[0].layer = panel.series[1].layer = 0, panel.series[0].layers = panel.series[1].layers = 1;
  stripe_coinciding(panel.series);
  CHECK_FALSE(has(svg(of(panel)), "stroke-dasharray"));
}

TEST_CASE("figure: a curve that failed ends with a cross, and its name says so") {
  Panel panel;
  panel.series = {line("dead", {3, 2})};
  panel.series[0].note = "FAILED";
  CHECK(marks(of(panel), Mark::Shape::line, Ink::Role::failure) == 2);
  CHECK(has(svg(of(panel)), "dead (FAILED)"));
}

TEST_CASE("figure: bars have their names, values, error bars and marks, and a failed one says so") {
  Panel panel;
  panel.x_label = "time (s)";
  panel.bars = {bar("one", 2), bar("two", 3), bar("none", kNone)};
  panel.bars[0].low = 1.5, panel.bars[0].high = 2.5, panel.bars[1].inner = 1;
  panel.bars[2].failed = true;
  for (const char* const word : {"one", "two", "none", "label of one", "label of none", "time (s)"}) {
    CHECK(has(svg(of(panel)), word));
    CHECK(has(words(of(panel)), word));
  }
  CHECK(marks(of(panel), Mark::Shape::area, Ink(0)) == 2);
}

TEST_CASE("figure: boxes have a middle, lines and dots; points a range around a reference") {
  Panel panel;
  panel.style = Panel::Style::boxes;
  panel.bars = {bar("box", 3)};
  panel.bars[0].from = 2, panel.bars[0].inner = 2.5, panel.bars[0].low = 1, panel.bars[0].high = 4;
  panel.bars[0].dots = {0.5, 6};
  CHECK(x_range(panel).low == 0.5);
  CHECK(x_range(panel).high == 6);
  CHECK(count(svg(of(panel)), "<circle") == 2);
  Panel points;
  points.style = Panel::Style::points, points.reference = 1;
  points.bars = {bar("ratio", 1.1)};
  points.bars[0].low = 1.05, points.bars[0].high = 1.15;
  CHECK(count(svg(of(points)), "<circle") == 1);
  CHECK(has(words(of(points)), "label of ratio"));
}

TEST_CASE("figure: a value above the bound is red in a map, and curves have a line at it") {
  Panel map;
  map.rows = {"a", "b"}, map.columns = {"1"}, map.reference = 0;
  for (const double value : {-1.0, 2.0}) {
    Cell cell;
    cell.row = value > 0, cell.value = value, cell.label = value > 0 ? "100" : "0.1";
    map.cells.push_back(cell);
  }
  const std::size_t red = marks(of(map), Mark::Shape::area, Ink::Role::failure);
  CHECK(red > 0);
  map.cells[1].value = -0.5;
  CHECK(marks(of(map), Mark::Shape::area, Ink::Role::failure) == 0);
  Panel curves;
  curves.series = {line("below", {0.1, 0.2, 0.3})};
  CHECK(marks(of(curves), Mark::Shape::line, Ink::Role::failure) == 0);
  curves.reference = 1;
  CHECK(marks(of(curves), Mark::Shape::line, Ink::Role::failure) == 1);
  CHECK(y_axis(curves).high >= 1);
}

TEST_CASE("figure: twice as many hues as the palette has are different colours, and steps are whole") {
  const Theme theme;
  std::vector<std::string> colours, of_page;
  for (std::size_t hue = 0; hue < 2 * theme.palette.size(); ++hue) {
    colours.push_back(colour(Ink(hue), theme)), of_page.push_back(css_colour(Ink(hue), theme));
  }
  for (auto* const colours_of : {&colours, &of_page}) {
    std::sort(colours_of->begin(), colours_of->end());
    CHECK(std::adjacent_find(colours_of->begin(), colours_of->end()) == colours_of->end());
  }
  Panel panel;
  panel.series = {line("few steps", {3, 2, 1.5})};
  for (const Tick& tick : x_ticks(panel, {1, 3}, 9)) CHECK(tick.at == std::floor(tick.at));
  panel.series[0].x = {1, 1.5, 3};
  CHECK(x_ticks(panel, {1, 3}, 9).size() > 3);
  CHECK(y_ticks(panel, {1, 3}, 9).size() > 3);
  panel.series[0].low = {1, 1, 1}, panel.series[0].high = {3, 2, 2};  // versions: whole, though their middle is not
  for (const Tick& tick : y_ticks(panel, {1, 3}, 9)) CHECK(tick.at == std::floor(tick.at));
}

TEST_CASE("figure: labels of an axis do not touch, and a curve that ends in a nan has its cross there") {
  for (const double width : {180.0, 320.0, 700.0}) {
    const auto made = fitting(width, 60, [](int count) { return ticks(21330000.0, 21330001.0, count, false); });
    REQUIRE(!made.empty());
    double last = -1e9;
    for (const Tick& tick : made) {
      const double middle = (tick.at - 21330000.0) * width, half = 3.7 * static_cast<double>(tick.label.size());
      CHECK(middle - half > last);
      last = middle + half;
    }
  }
  Panel panel;
  panel.series = {line("dead", {3, 2, kNone})};
  panel.series[0].note = "DIVERGED";
  const Scene drawn = scene(of(panel), Theme());
  double reach = 0, cross = 0;
  for (const Mark& mark : drawn.marks) {
    if (mark.shape == Mark::Shape::line && mark.ink == Ink::Role::failure) cross = std::max(cross, mark.at[0].x);
    if (mark.shape == Mark::Shape::line && mark.ink == Ink(0)) reach = std::max(reach, mark.at.back().x);
  }
  CHECK(cross > reach + 50);
}

TEST_CASE("figure: a heat map has its cells, and marks the best") {
  Panel panel;
  panel.x_label = "across", panel.y_label = "down";
  panel.columns = {"c1", "c2"}, panel.rows = {"r1"};
  panel.cells = {{0, 0, 1, "1.00", true}, {1, 0, 2, "2.00", false}};
  for (const char* const word : {"c1", "c2", "r1", "1.00", "2.00", "across", "down"}) {
    CHECK(has(svg(of(panel)), word));
    CHECK(has(words(of(panel)), word));
  }
  CHECK(has(words(of(panel)), "1.00*"));
}

TEST_CASE("figure: a panel without a finite value says so, and a logarithmic axis shows what is above 0") {
  Panel panel;
  panel.series = {line("nothing", {kNone, kNone})};
  CHECK(has(svg(of(panel)), "no finite value to draw"));
  panel.series = {line("log", {1000, 10, 0.1, -1})};
  panel.log_y = true;
  CHECK(y_range(panel).low == 0.1);
  CHECK(marks(of(panel), Mark::Shape::line, Ink(0)) == 1);
}

TEST_CASE("figure: names cannot break out of an SVG or a script") {
  Panel panel;
  panel.series = {line("<script>alert(1)</script>", {1, 2}), line("'; system(\"x\") #\n", {2, 1}, Ink(1))};
  CHECK_FALSE(has(svg(of(panel)), "<script>"));
  const std::string commands = script(scene(of(panel), Theme()), Theme(), Format::png);
  CHECK_FALSE(has(commands, "\nsystem"));
}

TEST_CASE("figure: the numbers of an axis have one form") {
  const auto text = [](const std::vector<double>& values) {
    std::string texts;
    for (const std::string& one : labels(values)) texts += one + " ";
    return texts;
  };
  CHECK(text({1e-4, 1e-3, 1e-2}) == "0.0001 0.001 0.01 ");
  CHECK(text({1e-6, 1e-3}) == "1e-6 1e-3 ");
  CHECK(text({0, 1e-7, 2e-7}) == "0 1e-7 2e-7 ");
  CHECK(text({0, 5e7, 1e8}) == "0 50 M 100 M ");
  CHECK(text({1, 2, 8}) == "1 2 8 ");
  CHECK(labels(std::vector<std::string>{"1e-04", "0.001"}) == std::vector<std::string>{"0.0001", "0.001"});
  CHECK(labels(std::vector<std::string>{"1e-04", "adam"}) == std::vector<std::string>{"1e-04", "adam"});
}

TEST_CASE("figure: ticks of one axis have one form") {
  for (const auto& [low, high, log] : {std::tuple{0.0, 1e-6, false}, {1e-6, 0.1, true}, {0.0, 6e7, false}}) {
    std::size_t plain = 0, exponents = 0;
    for (const Tick& tick : ticks(low, high, 6, log)) {
      if (tick.at == 0) CHECK(tick.label == "0");
      if (tick.at == 0) continue;
      (tick.label.find('e') != std::string::npos ? exponents : plain) += 1;
    }
    CHECK(plain * exponents == 0);
    CHECK(plain + exponents > 1);
  }
}

}  // namespace zs::figure

// SPDX-License-Identifier: Apache-2.0
// The renderers: gnuplot script, terminal, SVG, and the theme that they share.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "figure/canvas.hpp"
#include "figure/picture.hpp"
#include "figure/svg.hpp"
#include "figure/terminal.hpp"
#include "figure/thin.hpp"
#include "plot/figures.hpp"
#include "plot/kind.hpp"
#include "plot/sample_test.hpp"

namespace zs::plot {

using namespace figure;  // its tests too
namespace {

Figure two_curves() {
  Panel panel;
  panel.x_label = "step";
  panel.y_label = "loss";
  panel.series.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    panel.series[i].name = i ? "slow" : "fast";
    panel.series[i].colour = i;
    panel.series[i].x = {0, 5, 10};
    panel.series[i].y = {10, i ? 9.0 : 2.0, 0};
  }
  return {"Title", {panel}};
}

}  // namespace

TEST_CASE("without colour and Unicode, curves are letters") {
  const std::string text = terminal_text(two_curves(), Theme(), {40, 15, false, false});
  CHECK(text ==
        "Title\n"
        "    loss\n"
        "10 +abbbbbbbb\n"
        "   |  aaa    bbbbbbbbbb\n"
        "   |     aaa           bb\n"
        "   |        aa           bbb\n"
        " 5 +          aaa           bb\n"
        "   |             aaa          bb\n"
        "   |                aaaaaa      bbb\n"
        "   |                      aaaaaaaa bb\n"
        " 0 +                              aaaba\n"
        "   ++----------------+----------------+\n"
        "    0                5               10\n"
        "                   step\n"
        "  a  fast  b  slow\n");
}

TEST_CASE("a long label of the y axis is wrapped where the picture is narrow, and the curves begin below it") {
  Figure figure = two_curves();
  figure.panels[0].y_label = "loss minus that of zero_stage=1 deepcompile=false (nats/token)";
  const auto label = [&](double width) {
    std::vector<const Mark*> lines;
    static Scene drawn;
    drawn = scene(figure, {width});
    for (const Mark& mark : drawn.marks) {
      if (mark.shape == Mark::Shape::text && figure.panels[0].y_label.find(mark.text) != std::string::npos &&
          mark.text.size() > 5)
        lines.push_back(&mark);
    }
    return lines;
  };
  CHECK(label(900).size() == 1);
  const auto narrow = label(360);
  REQUIRE(narrow.size() == 2);
  CHECK(narrow[1]->text.ends_with("(nats/token)"));
  CHECK(narrow[1]->at[0].y > narrow[0]->at[0].y);
}

TEST_CASE("a map with long names has them whole on a phone too, above cells that do not run into one another") {
  Panel panel;
  panel.columns = {"3", "6", "9", "12"}, panel.rows = {"transformer.h.0.attn.c_attn.weight", "transformer.wte.weight"};
  for (std::size_t i = 0; i < 8; ++i) panel.cells.push_back({i % 4, i / 4, static_cast<double>(i), "0.0012"});
  panel.key = "L2 norm; tinted by its logarithm, which is said at length";
  const Scene drawn = scene({"Title", {panel}}, {360});
  std::vector<double> cells, names;
  for (const Mark& mark : drawn.marks) {
    if (mark.shape != Mark::Shape::text) continue;
    if (mark.text == "0.0012" && mark.anchor == Mark::Anchor::middle) cells.push_back(mark.at[0].x);
    if (std::find(panel.rows.begin(), panel.rows.end(), mark.text) != panel.rows.end()) names.push_back(mark.at[0].y);
    const double chars = static_cast<double>(characters(mark.text));
    if (mark.anchor == Mark::Anchor::start) CHECK(mark.at[0].x + 6 * chars < drawn.width);
  }
  CHECK(names.size() == 2);
  REQUIRE(cells.size() == 8);
  CHECK(cells[1] - cells[0] > 50);
}

TEST_CASE("no line is wider than the screen, whatever the names, in any of the modes") {
  metric::Store store = sample_batch();
  auto conditions = summary::conditions(store, "s");
  conditions[0].name = std::string(200, 'x');
  conditions[1].name = "\xE4\xB8\xAD name \x1b[31m with \"quotes\" and \\ 'all'";
  for (const bool unicode : {false, true}) {
    const Screen screen = {60, 20, unicode, false};
    for (const Figure& figure : {loss_figure(conditions), time_figure(conditions), memory_figure(conditions)}) {
      std::string line;
      for (const char c : terminal_text(figure, Theme(), screen)) {
        if (c != '\n') {
          line += c;
          continue;
        }
        std::size_t cells = 0;
        for (const char byte : line) cells += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
        CHECK_MESSAGE(cells <= 60, line);
        line.clear();
      }
    }
  }
}

TEST_CASE("curves that share a cell take turns along it") {
  Canvas canvas(12, 1, true);
  for (std::size_t curve = 0; curve < 3; ++curve) canvas.line(0, 0, 23, 0, curve);
  CHECK(canvas.cell(0, 0, 3).curve == 0);
  CHECK(canvas.cell(3, 0, 3).curve == 1);
  CHECK(canvas.cell(6, 0, 3).curve == 2);
  CHECK(canvas.cell(0, 0, 3).glyph == "\xE2\xA0\x89");  // dots 1 and 4
}

TEST_CASE("a name cannot break out of the script or the SVG") {
  Figure figure = two_curves();
  figure.panels[0].series[0].name = "a'; system('x')\n`y`\\";
  figure.panels[0].series[1].name = "</script><b>&";
  const std::string commands = script(scene(figure, Theme()), Theme(), Format::png);
  CHECK(commands.find("set label 'a''; system(''x'')\\n`y`\\' at ") != std::string::npos);
  CHECK(commands.find('"') == std::string::npos);  // double quotes would run `y`
  figure.title =
      "\x1b]0;x\a\xC2\x9B"
      "2J";
  const std::string text = terminal_text(figure, Theme(), {});
  CHECK(text.find("\\x1B]0;x\\x07\\u009B2J") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
  const std::string drawing = svg_element(scene(figure, Shape{}), Theme(), figure.title, "figure");
  CHECK(drawing.find("<b>") == std::string::npos);
  CHECK(drawing.find("&lt;/script&gt;&lt;b&gt;&amp;") != std::string::npos);
  CHECK(curves_json(figure.panels[0], Theme()).find('<') == std::string::npos);
}

TEST_CASE("a picture is laid out once: SVG and gnuplot have the same texts, and all of it lies within") {
  const metric::Store store = sample_batch();
  const auto conditions = summary::conditions(store, "s");
  const Figure map{"Map", {[] {
                     Panel panel;
                     panel.rows = {"a", "b"}, panel.columns = {"x", "y"};
                     for (std::size_t i = 0; i < 4; ++i)
                       panel.cells.push_back({i % 2, i / 2, static_cast<double>(i), std::to_string(i), i == 0});
                     return panel;
                   }()}};
  for (const Figure& figure : {loss_figure(conditions), time_figure(conditions), memory_figure(conditions),
                               distribution_figure(conditions), map}) {
    for (const double width : {380.0, 520.0, 880.0}) {
      const Scene drawn = scene(figure, Shape{width});
      CHECK(drawn.marks.size() > 10);
      const std::string commands = script(drawn, Theme(), Format::png), text = svg_element(drawn, Theme(), "t", "c");
      for (const Mark& mark : drawn.marks) {
        for (const Point& at : mark.at) {
          CHECK(at.x >= -1);
          CHECK(at.x <= width + 1);
          CHECK(at.y >= 0);
          CHECK(at.y <= drawn.height);
        }
        if (mark.text.empty()) continue;
        CHECK(commands.find("set label '" + mark.text + "'") != std::string::npos);
        CHECK(text.find(">" + mark.text + "<") != std::string::npos);
      }
    }
  }
}

TEST_CASE("stage is hue and compile is strength; of too many conditions five have a colour, and none twice") {
  metric::Store store = sample_batch();
  const auto six = looks(summary::conditions(store, "s"));  // in the order z1 z2 z3 z1c z2c z3c
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(six[i].ink.hue == i % 3);
    CHECK(six[i].ink.strong == (i > 2));
    CHECK_FALSE(six[i].rest);
  }
  std::vector<summary::Condition> many;
  for (int i = 0; i < 12; ++i) {
    many.push_back(summary::conditions(store, "s")[0]);
    many.back().name = "c" + std::to_string(i);
    many.back().set("final_loss", 3 - 0.1 * i);
  }
  const auto twelve = looks(many);
  std::vector<std::size_t> hues;
  for (const Look& one : twelve) {
    if (!one.rest) hues.push_back(one.ink.hue);
  }
  std::sort(hues.begin(), hues.end());
  CHECK(hues == std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(twelve[11].ink == Ink(0));  // the lowest loss
  CHECK(twelve[6].rest);
  const Panel panel = loss_figure(many).panels[0];
  CHECK(panel.notes.back() == "in colour: the five with the lowest final losses; in grey: 7 others");
}

TEST_CASE("conditions by stage and variant: alike ones have their names too, and an unknown stage leaves the name") {
  const metric::Store store = sample_batch();
  std::vector<summary::Condition> some = summary::conditions(store, "s");
  CHECK(stage_names(some)[0] == "ZeRO-1 (baseline)");
  CHECK(stage_names(some)[5] == "ZeRO-3 (DeepCompile)");
  some = {some[0], some[0], some[1], some[2]};
  some[1].name = "again";
  some[2].members[0].facts["backend"] = "fsdp";
  some[3].members[0].facts.erase("zero_stage");
  CHECK(stage_names(some) ==
        std::vector<std::string>{"ZeRO-1 (baseline), z1_baseline", "ZeRO-1 (baseline), again", "FSDP", "z3_baseline"});
  some[3].members[0].facts = {{"backend", "zero"}, {"zero_stage", "3"}, {"compile", "true"}, {"offload", "cpu"}};
  CHECK(stage_names(some)[3] == "ZeRO-3 (compile, offload cpu)");
  Options options;
  options.baseline = "z1_deepcompile";
  CHECK(plot::figure("difference", store, "s", options, /*by_stage=*/true).panels[0].y_label ==
        "loss minus that of ZeRO-1 (DeepCompile) (nats/token)");
}

TEST_CASE("equal curves are held once in the data of a page") {
  const metric::Store store = sample_batch();
  const std::string json = curves_json(loss_figure(summary::conditions(store, "s")).panels[0], Theme());
  std::size_t copies = 0;
  for (std::size_t at = 0; (at = json.find("\"same\":0", at)) != std::string::npos; ++at) ++copies;
  CHECK(copies == 5);
}

TEST_CASE("pictures are whole in every format") {
  const metric::Store store = sample_batch();
  const Figure figure = loss_figure(summary::conditions(store, "s"));
  CHECK(picture(figure, Theme(), Format::png).starts_with("\x89PNG"));
  CHECK(picture(figure, Theme(), Format::svg).find("identical to the last bit") != std::string::npos);
  CHECK(picture(figure, Theme(), Format::pdf).starts_with("%PDF"));
}

TEST_CASE("a theme is read back as it is written; a bad line is located") {
  std::string path = (std::filesystem::temp_directory_path() / "zs-theme-XXXXXX").string();
  close(mkstemp(path.data()));
  const auto put = [&](const std::string& text) { std::ofstream(path) << text; };
  Theme theme;
  theme.palette = {"#000000", "#ABCDEF"};
  theme.font = "DejaVu Serif";
  theme.scale = 1.5;
  put("# a comment\n\n" + to_text(theme));
  CHECK(to_text(read_theme(path)) == to_text(theme));
  put("font X\npalete #000000\n");
  CHECK_THROWS_WITH_AS(read_theme(path), (path + ":2: unknown key 'palete', did you mean 'palette'?").c_str(), Error);
  put("grid blue\n");
  CHECK_THROWS_WITH_AS(read_theme(path), (path + ":1: 'grid' takes one colour, #RRGGBB").c_str(), Error);
  put("scale nan\n");
  CHECK_THROWS_WITH_AS(read_theme(path), (path + ":1: 'scale' takes a number from 0.5 to 8").c_str(), Error);
  std::remove(path.c_str());
}

TEST_CASE("a summary without what a figure needs is an error that says so") {
  metric::Store store;
  CHECK_THROWS_WITH_AS(summary::conditions(store, "x.h5"), "x.h5: holds no summary (make one with zs-aggregate)",
                       Error);
  store.summary.emplace();
  CHECK_THROWS_WITH_AS(summary::conditions(store, "x.h5"),
                       "x.h5: the summary has no column 'condition' (make it with zs-aggregate)", Error);
  store.summary->column("condition", metric::Type::text).texts() = {"only"};
  const auto conditions = summary::conditions(store, "x.h5");
  CHECK_THROWS_WITH_AS(loss_figure(conditions), "no condition of the summary has a loss curve", Error);
  CHECK_THROWS_WITH_AS(time_figure(conditions), "no condition of the summary has an iteration time", Error);
  CHECK_THROWS_WITH_AS(memory_figure(conditions), "no condition of the summary has a peak memory", Error);
}

}  // namespace zs::plot

// SPDX-License-Identifier: Apache-2.0
// Table, picture and sentence say the same about equality.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "metric/file.hpp"
#include "plot/figures.hpp"
#include "report/batch.hpp"
#include "stat/summary.hpp"
#include "summary/losses.hpp"

namespace zs::report {
namespace {

enum class Equal { no, where_shared, everywhere };

Equal equality_of(const std::string& text) {
  const auto has = [&](const char* words) { return text.find(words) != std::string::npos; };
  const bool shared = has("same loss at every step they share") || has("equal at the steps that two of them share");
  return has("same loss at every logged step") || has("losses are equal, as logged, at every one") ? Equal::everywhere
         : shared                                                                                  ? Equal::where_shared
                                                                                                   : Equal::no;
}

Equal of_table(const metric::Store& store) {
  const summary::Pair pair = summary::pairs(store).at(0);
  return pair.verdict == "identical"    ? Equal::everywhere
         : pair.verdict == "incomplete" ? Equal::where_shared
                                        : Equal::no;
}

Equal of_picture(const metric::Store& store) {
  const plot::Figure figure = plot::loss_figure(summary::conditions(store, "s"));
  std::string notes;
  for (const std::string& note : figure.panels[0].notes) notes += note;
  return equality_of(notes);
}

Equal of_sentence(const metric::Store& store) {
  const Findings found = findings(store, "s");
  return equality_of(batch(store, found, "s", "").verdict_text.plain());
}

/// What all three say of conditions a and b with such records.
void check(const std::string& rows, Equal expected, const std::string& header = "step\tloss\n") {
  const metric::Store store = stat::summarize(metric::parse("#zs-metrics 1\nrun\t" + header + rows, "test"), {}).store;
  CAPTURE(rows);
  CHECK(of_table(store) == expected);
  CHECK(of_picture(store) == expected);
  CHECK(of_sentence(store) == expected);
}

}  // namespace

TEST_CASE("a table, a picture and a sentence about equality come from one comparison") {
  const std::string a = "a\t1\t3\na\t2\t2\na\t3\t1\n";
  check(a + "b\t1\t3\nb\t2\t2\nb\t3\t1\n", Equal::everywhere);
  check(a + "b\t1\t3\nb\t3\t1\n", Equal::where_shared);
  check(a + "b\t1\t3\nb\t2\t2\nb\t3\t1.0000000000000002\n", Equal::no);
  check(a + "b\t4\t3\nb\t5\t2\n", Equal::no);
  check("a\t1\t0\na\t2\t2\nb\t1\t-0\nb\t2\t2\n", Equal::no);
  check("a\t1\t3\t0\na\t1\t2\t1\nb\t1\t3\t0\nb\t1\t2.5\t1\n", Equal::no, "step\tloss\trank\n");
  check("a\t1\t1\t3\na\t2\t1\t2\nb\t1\t1\t3\nb\t2\t1\t2\n", Equal::everywhere, "epoch\tstep\tloss\n");
  check("a\t1\t1\t3\na\t2\t1\t2\nb\t1\t1\t3\nb\t2\t1\t2.5\n", Equal::no, "epoch\tstep\tloss\n");
}

TEST_CASE("no table, picture or sentence says that a nan is equal to another") {
  const std::string a = "a\t1\t3\na\t2\t2\na\t3\tnan\na\t4\t1\n", b = "b\t1\t3\nb\t2\t2\nb\t3\tnan\nb\t4\t1\n";
  const metric::Store store =
      stat::summarize(metric::parse("#zs-metrics 1\nrun\tstep\tloss\n" + a + b, "test"), {}).store;
  CHECK(of_table(store) == Equal::no);
  CHECK(of_picture(store) == Equal::no);
  CHECK(of_sentence(store) == Equal::no);
  const auto figure = plot::difference_figure(summary::conditions(store, "s"));
  for (const std::string& note : figure.panels[0].notes) CHECK(note.find("no difference") == std::string::npos);
}

TEST_CASE("one unit of the last printed digit is called that, two are a difference") {
  const auto label = [](const std::string& last) {
    const std::string rows = "a\t1\t3.123456\na\t2\t2.5\nb\t1\t3.123456\nb\t2\t" + last + "\n";
    const metric::Store store =
        stat::summarize(metric::parse("#zs-metrics 1\nrun\tstep\tloss\n" + rows, "test"), {}).store;
    const Findings found = findings(store, "s");
    return batch(store, found, "s", "").label;
  };
  CHECK(label("2.5") == "Equal losses");
  CHECK(label("2.500001") == "Losses equal up to the rounding of their print");
  CHECK(label("2.500002") == "Losses differ");
  CHECK(label("2.5000010000000001") == "Losses equal up to the rounding of their print");  // the same double
  CHECK(label("2.50000099999999") == "Losses differ");  // whoever writes so many digits writes every bit
}

TEST_CASE("losses that are one printed unit higher at most steps are not equal as printed") {
  const auto label = [](const std::function<double(int)>& more) {
    std::string rows;
    for (int step = 1; step <= 40; ++step) {
      rows += fmt::format("a\t{}\t{:.2f}\n", step, 4.0 - step / 20.0);
      rows += fmt::format("b\t{}\t{:.2f}\n", step, 4.0 - step / 20.0 + more(step));
    }
    const metric::Store store =
        stat::summarize(metric::parse("#zs-metrics 1\nrun\tstep\tloss\n" + rows, "test"), {}).store;
    const Findings found = findings(store, "s");
    return batch(store, found, "s", "").label;
  };
  CHECK(label([](int) { return 0.01; }) == "Losses differ");
  CHECK(label([](int step) { return step % 2 ? 0.01 : 0; }) == "Losses differ");
  CHECK(label([](int step) { return step % 2 ? 0.01 : -0.01; }) == "Losses equal up to the rounding of their print");
  CHECK(label([](int step) { return step % 9 ? 0 : 0.01; }) == "Losses equal up to the rounding of their print");
}

}  // namespace zs::report

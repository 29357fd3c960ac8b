// SPDX-License-Identifier: Apache-2.0
#include "stat/divergence.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <random>

#include "metric/file.hpp"
#include "stat/summary.hpp"

namespace zs::stat {
namespace {

/// The divergence table of runs whose attribute "c" names their condition.
metric::Table table_of(const std::string& text) {
  SummaryRule rule;
  rule.by = {"c"};
  return summarize(metric::parse("#zs-metrics 1\n" + text, "test"), rule).store.tables.at("divergence");
}
std::string cell(const metric::Table& table, const char* column) { return table.find(column)->text(0); }

const std::string kTwo = "#@ a c=A\n#@ b c=B\nrun\tstep\tloss\n";

}  // namespace

TEST_CASE("equal curves are identical, and the first difference has its step") {
  const metric::Table same = table_of(kTwo + "a\t1\t3\na\t2\t2\nb\t1\t3\nb\t2\t2\n");
  CHECK(cell(same, "baseline") == "A");
  CHECK(cell(same, "condition") == "B");
  CHECK(cell(same, "verdict") == "identical");
  CHECK(cell(same, "first_difference").empty());
  CHECK(cell(same, "loss_difference") == "0");
  const metric::Table differ = table_of(kTwo + "a\t1\t3\na\t2\t2\na\t3\t1\nb\t1\t3\nb\t2\t2.5\nb\t3\t1.25\n");
  CHECK(cell(differ, "verdict") == "different");
  CHECK(cell(differ, "first_difference") == "2");
  CHECK(cell(differ, "loss_difference") == "0.5");
  CHECK(cell(differ, "difference_step") == "2");
  CHECK(cell(differ, "final_difference") == "0.25");
  CHECK(cell(differ, "envelope").empty());
}

TEST_CASE("one unit in the last place is a difference") {
  const metric::Table table = table_of(kTwo + "a\t1\t1\nb\t1\t1.0000000000000002\n");
  CHECK(cell(table, "verdict") == "different");
  CHECK(cell(table, "first_difference") == "1");
}

TEST_CASE("nan never agrees, and missing steps are not agreement") {
  const metric::Table nan = table_of(kTwo + "a\t1\tnan\na\t2\t2\nb\t1\tnan\nb\t2\t2\n");
  CHECK(cell(nan, "verdict") == "different");
  CHECK(cell(nan, "first_difference") == "1");
  CHECK(cell(nan, "loss_difference") == "nan");
  const metric::Table missing = table_of(kTwo + "a\t1\t3\na\t2\t2\nb\t1\t3\n");
  CHECK(cell(missing, "verdict") == "incomplete");
  CHECK(cell(missing, "steps_missing") == "1");
  CHECK(cell(table_of(kTwo + "a\t1\t3\nb\t2\t3\n"), "verdict") == "nothing to compare");
}

/// Runs a1, a2 ... and b1, b2 ... of conditions A and B, of 100 steps, by (is B, run, step), with 6 decimals.
std::string runs_of(int count, const std::function<double(bool, int, int)>& loss, const std::string& more = "") {
  std::string attributes, rows = "run\tstep\tloss\n";
  for (const bool b : {false, true}) {
    for (int run = 1; run <= count; ++run) {
      const std::string name = (b ? "b" : "a") + std::to_string(run);
      attributes += fmt::format("#@ {} c={}\n", name, b ? "B" : "A");
      if (!more.empty()) attributes += fmt::format("#@ {} {}={}\n", name, more, run);
      for (int step = 1; step <= 100; ++step) rows += fmt::format("{}\t{}\t{:.6f}\n", name, step, loss(b, run, step));
    }
  }
  return attributes + rows;
}

/// Between -1 and 1, another for each; about even.
double noise(bool b, int run, int step) {
  std::mt19937 made(static_cast<unsigned>(1000000 * b + 10000 * run + step));
  return static_cast<double>(made()) / 2147483648.0 - 1;
}

TEST_CASE("early noise of repeated runs hides no later difference") {
  for (const int runs : {2, 3, 6}) {
    const double far = runs == 2 ? 0.1 : 0.01;  // two runs show less
    const metric::Table table = table_of(runs_of(runs, [&](bool b, int run, int step) {
      return 3 + (step < 11 ? 1.0 : 0.001) * noise(b, run, step) + (b && step > 50 ? far : 0);
    }));
    CAPTURE(runs);
    CHECK(cell(table, "verdict") == "different");
    CHECK(cell(table, "first_outside") == "51");
    CHECK(std::stod(cell(table, "outside_difference")) == doctest::Approx(far).epsilon(0.1));
    CHECK(std::stod(cell(table, "outside_spread")) < 0.002);
  }
}

TEST_CASE("a difference that repeated runs reach later is noise that grows") {
  const auto loss = [](bool b, int run, int step) {
    return 3 + 1e-4 * (step > 10 ? noise(b, run, 0) * step : 0) + (b ? 1e-6 : 0);
  };
  const metric::Table table = table_of(runs_of(3, loss));
  CHECK(cell(table, "verdict") == "inside");
  CHECK(cell(table, "first_difference") == "1");
  CHECK(cell(table, "first_outside").empty());
}

TEST_CASE("runs with equal seeds are compared with each other") {
  // Seeds differ by much more than the two conditions do.
  const auto loss = [](bool b, int run, int step) {
    return 3 + noise(false, run, 0) + (b && step > 20 ? 0.003 + 1e-5 * noise(b, run, step) : 0);
  };
  CHECK(cell(table_of(runs_of(3, loss, "seed")), "verdict") == "different");
  CHECK(cell(table_of(runs_of(3, loss, "seed")), "first_outside") == "21");
  CHECK(cell(table_of(runs_of(3, loss)), "verdict") == "inside");
}

TEST_CASE("repeated runs of one training are seldom called different, whatever their number") {
  for (const int runs : {2, 3, 6}) {
    int different = 0;
    for (int trial = 0; trial < 40; ++trial) {
      const auto loss = [&](bool b, int run, int step) {  // what a run has of its own, and what each step has
        return 3 + 0.1 * noise(b, run, -1 - trial) + 0.01 * noise(b, run, step + 200 * trial);
      };
      different += cell(table_of(runs_of(runs, loss)), "verdict") == "different";
    }
    CAPTURE(runs);
    CHECK(different <= 4);
  }
}

TEST_CASE("one printed unit between runs that repeat as printed is no difference") {
  const auto loss = [](bool b, int run, int step) {
    return 2.3 + (step == 3 && run == 1 ? 0.1 : 0) + (b && step == 7 ? 0.1 : 0);
  };
  const auto text = [&](bool b, int run, int step) { return fmt::format("{:.1f}", loss(b, run, step)); };
  std::string rows = "#@ a1 c=A\n#@ a2 c=A\n#@ b1 c=B\n#@ b2 c=B\n";
  for (const char* const name : {"a1", "a2", "b1", "b2"}) rows += fmt::format("#@ {} source=x.log\n", name);
  rows += "run\tstep\tloss\n";
  for (const bool b : {false, true}) {
    for (int run = 1; run <= 2; ++run) {
      for (int step = 1; step <= 10; ++step)
        rows += fmt::format("{}{}\t{}\t{}\n", b ? "b" : "a", run, step, text(b, run, step));
    }
  }
  CHECK(cell(table_of(rows), "verdict") == "inside");
}

TEST_CASE("digests are compared where every run has one") {
  const std::string rows = "run\tstep\tloss\na\t1\t3\nb\t1\t3\n";
  CHECK(cell(table_of("#@ a c=A\n#@ b c=B\n#@ a state_digest=x\n#@ b state_digest=x\n" + rows), "digest") == "same");
  CHECK(cell(table_of("#@ a c=A\n#@ b c=B\n#@ a state_digest=x\n#@ b state_digest=y\n" + rows), "digest") ==
        "different");
  CHECK(cell(table_of("#@ a c=A\n#@ b c=B\n#@ a state_digest=x\n" + rows), "digest").empty());
}

}  // namespace zs::stat

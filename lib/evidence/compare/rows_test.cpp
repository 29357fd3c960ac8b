// SPDX-License-Identifier: Apache-2.0
#include "compare/rows.hpp"

#include <doctest/doctest.h>

#include "metric/file.hpp"

namespace zs::compare {
namespace {

/// "step 1; step 2, attempt 2; (step 3)": what a restart replaced stands in brackets.
std::string told(const std::string& text, bool epochs = true) {
  std::string places;
  for (const Row& row : rows(metric::parse("#zs-metrics 1\n" + text, "test").runs.at(0).records, epochs)) {
    const std::string one = to_text(row.place);
    places += (places.empty() ? "" : "; ") + (row.replaced ? "(" + one + ")" : one);
  }
  return places;
}

}  // namespace

TEST_CASE("rows: each has its epoch, step and rank") {
  CHECK(told("run\tepoch\tstep\tloss\na\t1\t1\t3\na\t\t2\t3\na\t2\t1\t3\n") ==
        "epoch 1, step 1; epoch 1, step 2; epoch 2, step 1");
  CHECK(told("run\trank\tstep\tloss\na\t0\t1\t3\na\t1\t1\t3\na\t\t2\t3\n") == "step 1; step 1, rank 1; step 2");
  CHECK(told("run\tloss\na\t3\na\t2\n") == "row 1 without a step; row 2 without a step");
}

TEST_CASE("rows: a restart makes a new attempt, and what it replaces is kept") {
  CHECK(told("run\tstep\tloss\na\t1\t3\na\t2\t3\na\t3\t3\na\t2\t3\na\t3\t3\n") ==
        "step 1; (step 2); (step 3); step 2, attempt 2; step 3, attempt 2");
  CHECK(told("run\tstep\tloss\na\t1\t3\na\t2\t3\na\t1\t3\n") == "(step 1); (step 2); step 1, attempt 2");
  CHECK(told("run\tstep\tloss\na\t1\t3\na\t2\t3\na\t2\t2\n") == "step 1; (step 2); step 2, attempt 2");
  // What comes late is not what comes again.
  CHECK(told("run\tstep\tloss\na\t2\t3\na\t1\t3\na\t3\t3\n") == "step 2; step 1; step 3");
  CHECK(told("run\tstep\tloss\na\t2\t3\na\t1\t3\na\t2\t3\n") == "(step 2); step 1; step 2, attempt 2");
  CHECK(told("run\tstep\tloss\tgrad_norm\na\t2\t3\t\na\t1\t3\t\na\t1\t\t5\n") == "step 2; step 1");
  // Ranks that are not level are not restarts.
  CHECK(told("run\trank\tstep\tloss\na\t0\t1\t3\na\t0\t2\t3\na\t1\t1\t3\na\t1\t2\t3\n") ==
        "step 1; step 2; step 1, rank 1; step 2, rank 1");
  // Without epochs, steps that begin again are.
  CHECK(told("run\tepoch\tstep\tloss\na\t1\t1\t3\na\t2\t1\t3\n", false) == "(step 1); step 1, attempt 2");
}

TEST_CASE("rows: where steps go on from epoch to epoch, a restart is found although few rows say the epoch") {
  const std::string head = "run\tepoch\tstep\tloss\n";
  CHECK(told(head + "a\t\t1\t3\na\t\t2\t3\na\t0\t3\t3\na\t\t2\t3\na\t0\t3\t3\n") ==
        "step 1; (step 2); (epoch 0, step 3); step 2, attempt 2; epoch 0, step 3, attempt 2");
  CHECK(
      told(head + "a\t1\t1\t3\na\t\t2\t3\na\t2\t3\t3\na\t\t2\t3\na\t2\t3\t3\n") ==
      "epoch 1, step 1; (epoch 1, step 2); (epoch 2, step 3); epoch 1, step 2, attempt 2; epoch 2, step 3, attempt 2");
}

TEST_CASE("rows: records of one step are one row") {
  CHECK(told("run\tstep\tloss\tgrad_norm\tlearning_rate\na\t1\t3\t\t0.1\na\t1\t\t2\t0.1\n") == "step 1");
  CHECK(told("run\tstep\tloss\tgrad_norm\na\t1\t3\t1\na\t1\t\t2\n") == "(step 1); step 1, attempt 2");
}

TEST_CASE("rows: a step that comes again and again keeps only the rows whose values no later one has") {
  std::string text = "#zs-metrics 1\nrun\tstep\tloss\tgrad_norm\na\t1\t3\t7\n";
  constexpr std::size_t kTimes = 20'000;
  for (std::size_t i = 1; i < kTimes; ++i) text += "a\t1\t3\t\n";
  const metric::Run run = metric::parse(text, "test").runs.at(0);
  const std::vector<Row> read = rows(run.records);
  REQUIRE(read.size() == kTimes);
  CHECK(read.back().rows == std::vector<std::size_t>{0, kTimes - 1});  // the norm, and the last loss
  CHECK(cell(*run.records.find("grad_norm"), read.back()) == 0);
  CHECK(cell(*run.records.find("loss"), read.back()) == kTimes - 1);
}

}  // namespace zs::compare

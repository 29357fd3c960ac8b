// SPDX-License-Identifier: Apache-2.0
#include "stat/divergence.hpp"

#include <doctest/doctest.h>

#include <cmath>

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

TEST_CASE("repeated runs give the envelope that a difference may have") {
  const std::string repeated =
      "#@ a c=A\n#@ a2 c=A\n#@ b c=B\nrun\tstep\tloss\na\t1\t3\na2\t1\t3.5\na\t2\t2\na2\t2\t2\n";
  const metric::Table inside = table_of(repeated + "b\t1\t3.25\nb\t2\t2.25\n");
  CHECK(cell(inside, "envelope") == "0.5");
  CHECK(cell(inside, "verdict") == "inside");
  CHECK(cell(inside, "first_difference") == "2");
  const metric::Table outside = table_of(repeated + "b\t1\t3.25\nb\t2\t2.75\n");
  CHECK(cell(outside, "verdict") == "different");
  CHECK(cell(outside, "first_outside") == "2");
}

TEST_CASE("digests are compared where every run has one") {
  const std::string rows = "run\tstep\tloss\na\t1\t3\nb\t1\t3\n";
  CHECK(cell(table_of("#@ a c=A\n#@ b c=B\n#@ a state_digest=x\n#@ b state_digest=x\n" + rows), "digest") == "same");
  CHECK(cell(table_of("#@ a c=A\n#@ b c=B\n#@ a state_digest=x\n#@ b state_digest=y\n" + rows), "digest") ==
        "different");
  CHECK(cell(table_of("#@ a c=A\n#@ b c=B\n#@ a state_digest=x\n" + rows), "digest").empty());
}

}  // namespace zs::stat

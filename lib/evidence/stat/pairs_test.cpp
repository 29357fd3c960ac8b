// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "compare/pairs_test.hpp"
#include "stat/summary.hpp"

namespace zs::stat {

TEST_CASE("pairs: the table of divergence, as zs-aggregate makes it") {
  compare::Tally tally("divergence");
  for (const compare::RunPair& pair : compare::run_pairs(3, 50)) {
    if (pair.kind == "a digest in one alone") continue;  // its column "digest" is empty: nothing is claimed
    metric::Store store;
    store.runs = {pair.a, pair.b};
    const metric::Table table = stat::summarize(store, {}).store.tables.at("divergence");
    const bool passes = table.find("verdict")->text(0) == "identical" && table.find("digest")->text(0) != "different";
    tally.count(pair.kind, pair.equal, passes);
  }
  MESSAGE(tally.text(true));
  CHECK(tally.wrong() == 0);
}

TEST_CASE("pairs: runs of one condition whose mean is another's are not identical to it") {
  metric::Store store;
  const auto run = [](const std::string& name, const std::string& condition, double loss) {
    metric::Run made = compare::run_of(name, {{1, 1, 0, {{"loss", loss}}}, {1, 2, 0, {{"loss", loss - 1}}}});
    made.attributes["c"] = condition;
    return made;
  };
  store.runs = {run("a", "A", 3), run("b", "A", 5), run("c", "B", 4), run("d", "B", 4)};
  stat::SummaryRule rule;
  rule.by = {"c"};
  const metric::Table table = stat::summarize(store, rule).store.tables.at("divergence");
  CHECK(table.find("loss_difference")->text(0) == "0");
  CHECK(table.find("verdict")->text(0) == "inside");
  CHECK(table.find("differs_in")->text(0) == "loss");
}

}  // namespace zs::stat

// SPDX-License-Identifier: Apache-2.0
#include "comparison/two_runs.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "attribute/difference.hpp"
#include "attribute/table.hpp"

namespace zs::comparison {
namespace {

using Kind = compare::Verdict;

Recorded recorded(const std::string& path, const std::vector<std::int64_t>& steps, const std::vector<double>& losses) {
  Recorded r;
  r.path = path;
  r.run.records.column("step").integers() = steps;
  r.run.records.column("loss").reals() = losses;
  r.run.records.even_out();
  return r;
}

std::string line(const Answer& answer, const std::string& key) {
  for (const auto& [name, value] : answer.lines) {
    if (name == key) return value;
  }
  return "";
}

TEST_CASE("two runs: the same numbers are exact, one bit is not") {
  const Recorded a = recorded("a", {1, 2, 3}, {3, 2.5, 2});
  CHECK(compare_runs(a, recorded("b", {1, 2, 3}, {3, 2.5, 2}), {}).verdict == Kind::exact);
  const Answer answer = compare_runs(a, recorded("b", {1, 2, 3}, {3, std::nextafter(2.5F, 3.0F), 9}), {});
  CHECK(answer.verdict == Kind::different);
  CHECK(line(answer, "step") == "2");
  CHECK(line(answer, "what") == "loss");
  CHECK(line(answer, "a_hex") == "0x1.4p+1");
  CHECK(line(answer, "ulp") == "1 (float32)");
  CHECK(compare_runs(a, recorded("b", {1, 2, 3}, {3, 2.50001, 2}), {1e-3, 0}).verdict == Kind::within);
}

TEST_CASE("two runs: the verdict where they differ in one attribute is that of its role") {
  using attribute::Attribute;
  using attribute::Role;
  attribute::Facts known;
  for (const Attribute& row : attribute::table()) {
    if (row.role < Role::measurement) known[std::string(row.name)] = row.type == attribute::Type::text ? "one" : "2";
  }
  known["expected_steps"] = "3";
  std::size_t changed = 0;
  for (const Attribute& row : attribute::table()) {
    const std::string name(row.name);
    // How a run ended, and how many steps it was to have, is judged by itself.
    if (name.ends_with('*') || row.ending || name == "expected_steps" || name == "state_digest") continue;
    INFO(name);
    Recorded a = recorded("a", {1, 2, 3}, {3, 2.5, 2}), b = recorded("b", {1, 2, 3}, {3, 2.5, 1});
    a.run.attributes = b.run.attributes = known;
    b.run.attributes[name] = a.run.attributes[name] = row.type == attribute::Type::text ? "one" : "2";
    if (!row.through.empty()) {  // else what it acts through, which both know, counts
      a.run.attributes.erase(std::string(row.through)), b.run.attributes.erase(std::string(row.through));
      const std::string factor = name == "world_size" ? "batch_size" : "world_size";
      if (row.through == "global_batch_size") a.run.attributes.erase(factor), b.run.attributes.erase(factor);
    }
    b.run.attributes[name] = row.type == attribute::Type::text ? "other" : "4";
    const Answer answer = compare_runs(a, b, {});
    const std::string because = line(answer, "because");
    const bool decides = row.role == Role::decides || (row.role == Role::layout && !row.through.empty());
    CHECK(answer.verdict == (decides ? Kind::not_comparable : Kind::different));
    CHECK(because.starts_with(decides                        ? "they train different things: "
                              : row.role == Role::arithmetic ? "they are not expected to be the same bits"
                                                             : ""));
    CHECK(because.empty() == (!decides && row.role != Role::arithmetic));
    ++changed;
  }
  CHECK(changed > 100);
}

TEST_CASE("two runs: what was printed with few digits is compared as far as they go") {
  Recorded a = recorded("a", {1, 2}, {3.123456789012345, 2.5}), b = recorded("b", {1, 2}, {3.123457, 2.5});
  b.precision["loss"] = {false, 6};
  CHECK(compare_runs(a, b, {}).verdict == Kind::printed);
  CHECK(compare_runs(b, b, {}).verdict == Kind::printed);
  CHECK(compare_runs(b, b, {}).columns.find("known_to")->texts().front() == "6 decimals (5e-07)");
  Recorded c = recorded("c", {1, 2}, {3.123458, 2.5});
  c.precision["loss"] = {false, 6};
  CHECK(compare_runs(b, c, {}).verdict == Kind::different);
  CHECK(compare_runs(a, c, {}).verdict == Kind::different);
}

TEST_CASE("two runs: steps that both lack and nobody expects leave the comparison undecided") {
  const std::vector<std::int64_t> steps = {1, 2, 3, 4, 6, 7, 8};
  const std::vector<double> losses = {3, 2.9, 2.8, 2.7, 2.5, 2.4, 2.3};
  const Answer answer = compare_runs(recorded("a", steps, losses), recorded("b", steps, losses), {});
  CHECK(answer.verdict == Kind::inconclusive);
  CHECK(line(answer, "reason") ==
        "1 logged step is missing in a, the first is 5; 1 logged step is missing in b, the first is 5");
}

TEST_CASE("two runs: gaps, NaN, dead losses and empty comparisons fail with a name") {
  const Recorded a = recorded("a", {1, 2, 3}, {3, 2.5, 2});
  const auto reason = [&](const Recorded& x, const Recorded& y) {
    const Answer answer = compare_runs(x, y, {});
    CHECK(answer.verdict == Kind::failed);
    return line(answer, "reason");
  };
  CHECK(reason(a, recorded("b", {1, 3}, {3, 2})) == "step 2 is in a and missing in b");
  CHECK(reason(a, recorded("b", {4, 5}, {3, 2})) == "the runs have no step in common");
  const Recorded bad = recorded("b", {1, 2, 3}, {3, NAN, 2});
  CHECK(reason(a, bad) == "loss of step 2 is not finite in b: 2.5 and nan");
  CHECK(reason(bad, bad) == "loss of step 2 is not finite in both: nan and nan");
  const Recorded dead = recorded("b", {1, 2, 3}, {3, 3, 3});
  CHECK(reason(dead, dead).starts_with("b is DEAD: the loss is 3 at all 3 points"));
  Recorded torn = a;
  torn.faults = {"a:3: malformed step line"};
  CHECK(reason(torn, a) == "1 faults in a: a:3: malformed step line");
  CHECK(reason(recorded("a", {}, {}), recorded("b", {}, {})) == "the runs have no step in common");
}

TEST_CASE("two runs: what decides, how numbers are rounded, and what must not matter") {
  Recorded a = recorded("a", {1, 2}, {3, 2.5}), b = recorded("b", {1, 2}, {3, 2.25});
  a.run.attributes = b.run.attributes = {{"seed", "1"}, {"dtype", "float32"}, {"zero_stage", "1"}, {"host", "x"}};
  b.run.attributes["host"] = "y";
  CHECK(compare_runs(a, b, {}).verdict == Kind::different);
  CHECK(line(compare_runs(a, b, {}), "because").empty());
  b.run.attributes["zero_stage"] = "3";
  CHECK(compare_runs(a, b, {}).verdict == Kind::different);
  CHECK(line(compare_runs(a, b, {}), "layout") == "they differ in ZeRO stage (1 and 3), which must not change a bit");
  b.run.attributes["dtype"] = "bfloat16";
  CHECK(compare_runs(a, b, {}).verdict == Kind::different);
  CHECK(line(compare_runs(a, b, {}), "because") ==
        "they are not expected to be the same bits, because they differ in number format (float32 and bfloat16)");
  b.run.attributes["seed"] = "2";
  const Answer answer = compare_runs(a, b, {});
  CHECK(answer.verdict == Kind::not_comparable);
  CHECK(line(answer, "because") == "they train different things: they differ in seed (1 and 2)");
  CHECK(line(answer, "step") == "2");  // what differs is told all the same
}

TEST_CASE("two runs: what only one says explains other numbers, and leaves equal ones equal") {
  Recorded a = recorded("a", {1, 2}, {3, 2.5}), b = recorded("b", {1, 2}, {3, 2.25});
  a.run.attributes = b.run.attributes = {{"dtype", "float32"}};
  a.run.attributes["seed"] = "7";
  Recorded twin = a;
  twin.path = "b", twin.run.attributes.erase("seed");
  const Answer equal = compare_runs(a, twin, {});
  CHECK(equal.verdict == Kind::exact);
  CHECK(line(equal, "not known") == "whether they differ in seed (7 and not recorded)");
  const Answer other = compare_runs(a, b, {});
  CHECK(other.verdict == Kind::different);
  CHECK(line(other, "because") == "they train different things: they differ in seed (7 and not recorded)");
  CHECK(line(other, "not known").empty());
  b.run.attributes["learning_rate"] = "1", a.run.attributes["learning_rate"] = "2";
  CHECK(compare_runs(a, b, {}).verdict == Kind::not_comparable);
}

TEST_CASE("two runs: a run that failed or did not get to its end proves nothing") {
  const Recorded a = recorded("a", {1, 2}, {3, 2.5}), b = recorded("b", {1, 2}, {3, 2.5});
  const auto reason = [&](const std::string& key, const std::string& value) {
    Recorded x = a, y = b;
    x.run.attributes[key] = y.run.attributes[key] = value;
    const Answer answer = compare_runs(x, y, {});
    CHECK(answer.verdict == Kind::failed);
    return line(answer, "reason");
  };
  CHECK(reason("exit_code", "1") == "a is FAILED: exit code 1; b is FAILED: exit code 1");
  CHECK(reason("expected_steps", "100").starts_with("a is TRUNCATED: "));
}

TEST_CASE("two runs: a copy is no second run") {
  Recorded a = recorded("a", {1, 2}, {3, 2.5});
  a.run.attributes["run_id"] = "20261121_000000_aaaaaa";
  a.run.records.column("iteration_time").reals() = {0.1, 0.2};
  Recorded b = a;
  b.path = "b";
  CHECK(compare_runs(a, b, {}).verdict == Kind::failed);
  b.run.records.column("iteration_time").reals() = {0.1, 0.3};
  CHECK(compare_runs(a, b, {}).verdict == Kind::exact);
}

TEST_CASE("two runs: equal losses with other parameters differ") {
  Recorded a = recorded("a", {1, 2}, {3, 2.5}), b = recorded("b", {1, 2}, {3, 2.5});
  a.run.attributes["state_digest"] = "00";
  b.run.attributes["state_digest"] = "01";
  const Answer answer = compare_runs(a, b, {});
  CHECK(answer.verdict == Kind::different);
  CHECK(line(answer, "what") == "state_digest");
}

TEST_CASE(
    "two runs: beside a checkpoint that differs stands only what differs, and what is equal in a line of its own") {
  Answer found, answer;
  found.verdict.worsen(Kind::different);
  found.lines = {{"verdict", "DIFFERENT"},
                 {"float32", "different: 1 of 4 elements, in 2 tensors"},
                 {"step", "equal: 52 values"},
                 {"betas", "equal: 52 values"}};
  add(answer, "final_checkpoint", found);
  CHECK(answer.lines == compare::AnswerLines{{"final_checkpoint", "DIFFERENT"},
                                             {"final_checkpoint float32", "different: 1 of 4 elements, in 2 tensors"},
                                             {"final_checkpoint equal", "step 52 values; betas 52 values"}});
}

}  // namespace
}  // namespace zs::comparison

// SPDX-License-Identifier: Apache-2.0
#include "verify/two_runs.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace zs::verify {
namespace {

using Kind = RunsVerdict::Kind;

Recorded recorded(const std::string& path, const std::vector<std::int64_t>& steps, const std::vector<double>& losses) {
  Recorded r;
  r.path = path;
  r.run.records.column("step").integers() = steps;
  r.run.records.column("loss").reals() = losses;
  r.run.records.even_out();
  return r;
}

std::string line(const RunsVerdict& verdict, const std::string& key) {
  for (const auto& [name, value] : verdict.lines) {
    if (name == key) return value;
  }
  return "";
}

TEST_CASE("two runs: the same numbers are exact, one bit is not") {
  const Recorded a = recorded("a", {1, 2, 3}, {3, 2.5, 2});
  CHECK(compare_runs(a, recorded("b", {1, 2, 3}, {3, 2.5, 2}), {}).kind == Kind::exact);
  const RunsVerdict verdict = compare_runs(a, recorded("b", {1, 2, 3}, {3, std::nextafter(2.5F, 3.0F), 9}), {});
  CHECK(verdict.kind == Kind::different);
  CHECK(line(verdict, "step") == "2");
  CHECK(line(verdict, "what") == "loss");
  CHECK(line(verdict, "a_hex") == "0x1.4p+1");
  CHECK(line(verdict, "ulp") == "1 (float32)");
  CHECK(compare_runs(a, recorded("b", {1, 2, 3}, {3, 2.50001, 2}), {1e-3, 0}).kind == Kind::within);
}

TEST_CASE("two runs: what was printed with few digits is compared as far as they go") {
  Recorded a = recorded("a", {1, 2}, {3.123456789012345, 2.5}), b = recorded("b", {1, 2}, {3.123457, 2.5});
  b.precision["loss"] = {false, 6};
  CHECK(compare_runs(a, b, {}).kind == Kind::printed);
  CHECK(compare_runs(b, b, {}).kind == Kind::printed);
  CHECK(compare_runs(b, b, {}).columns.find("known_to")->texts().front() == "6 decimals (5e-07)");
  Recorded c = recorded("c", {1, 2}, {3.123458, 2.5});
  c.precision["loss"] = {false, 6};
  CHECK(compare_runs(b, c, {}).kind == Kind::different);
  CHECK(compare_runs(a, c, {}).kind == Kind::different);
}

TEST_CASE("two runs: precision is what the digits show") {
  CHECK(precision_of({"2.345678", "2.3"}).decimals == 6);
  CHECK_FALSE(precision_of({"2.345678"}).every_bit);
  CHECK(precision_of({"5.567336559295654"}).every_bit);
  CHECK(precision_of({"4.9e-05"}).decimals == 6);
  CHECK(precision_of({"0.000000000000001"}).decimals == 15);
  CHECK_FALSE(precision_of({"0.000000000000001"}).every_bit);
  CHECK(precision_of({"0.0005"}).uncertainty() == doctest::Approx(5e-5));
}

TEST_CASE("two runs: gaps, NaN, dead losses and empty comparisons fail with a name") {
  const Recorded a = recorded("a", {1, 2, 3}, {3, 2.5, 2});
  const auto reason = [&](const Recorded& x, const Recorded& y) {
    const RunsVerdict verdict = compare_runs(x, y, {});
    CHECK(verdict.kind == Kind::failed);
    return line(verdict, "reason");
  };
  CHECK(reason(a, recorded("b", {1, 3}, {3, 2})) == "step 2 is in a and missing in b");
  CHECK(reason(a, recorded("b", {4, 5}, {3, 2})) == "the runs have no step in common");
  const Recorded bad = recorded("b", {1, 2, 3}, {3, NAN, 2});
  CHECK(reason(a, bad) == "loss of step 2 is not finite in b: 2.5 and nan");
  CHECK(reason(bad, bad) == "loss of step 2 is not finite in both: nan and nan");
  const Recorded dead = recorded("b", {1, 2}, {3, 3});
  CHECK(reason(dead, dead) == "the loss does not move: it is 3 in every step");
  Recorded torn = a;
  torn.faults = {"a:3: malformed step line"};
  CHECK(reason(torn, a) == "1 faults in a: a:3: malformed step line");
  CHECK(reason(recorded("a", {}, {}), recorded("b", {}, {})) == "the runs have no step in common");
}

TEST_CASE("two runs: equal losses with other parameters differ") {
  Recorded a = recorded("a", {1, 2}, {3, 2.5}), b = recorded("b", {1, 2}, {3, 2.5});
  a.run.attributes["state_digest"] = "00";
  b.run.attributes["state_digest"] = "01";
  const RunsVerdict verdict = compare_runs(a, b, {});
  CHECK(verdict.kind == Kind::different);
  CHECK(line(verdict, "what") == "state_digest");
}

}  // namespace
}  // namespace zs::verify

// SPDX-License-Identifier: Apache-2.0
#include "rollout/answer.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "compare/ledger.hpp"
#include "rollout/recording.hpp"

namespace zs::rollout {
namespace {

using Json = nlohmann::json;

/// A dump of `count` sequences of 16 tokens; the generator's value of token i of sequence s is lower by by(s, i) than
/// the trainer's, which is -1 of the first token and `later` of the others.
template <typename Apart>
std::string dump(int count, Apart by, const Json& more = {{"generator_dtype", "F32"}, {"trainer_dtype", "F32"}},
                 double later = -1) {
  Json head = {{"zs_rollout", 1}, {"system", "TRL"}};
  head.update(more);
  std::string text = head.dump() + "\n";
  for (int s = 0; s < count; ++s) {
    Json row = {{"step", s / 8}, {"sample", std::to_string(s)}, {"prompt", 1}, {"version", std::to_string(s / 16)}};
    row["ids"] = {9};
    for (int i = 0; i < 16; ++i) {
      const double d = by(s, i);
      row["ids"].push_back(i);
      const double train = i == 0 ? -1 : later;
      row["gen"].push_back(d == d ? Json(train - d) : Json("nan")), row["train"].push_back(train);
    }
    text += row.dump() + "\n";
  }
  return text;
}

double none(int, int) { return 0; }
double rounding(int s, int i) { return (s * 16 + i) % 2 ? 2e-6 : -2e-6; }
double coarse(int s, int i) { return (s * 7 + i * 13) % 11 * 0.004 - 0.02; }
double fault(int s, int i) { return s == 20 && i >= 3 ? (i % 2 ? 2.5 : -0.9) : (s * 7 + i * 13) % 11 * 1e-2 - 0.05; }

TEST_CASE("rollout answer: the verdict of each kind of difference, with its reason and place") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rollout-0.jsonl"), healthy = folder.file("rollout-1.jsonl");
  write_file(healthy, dump(32, rounding));
  const Json untyped = {{"generator_dtype", ""}}, half = {{"generator_dtype", "BF16"}};
  struct Case {
    std::string text;
    std::string verdict, reason, where;
    std::string floor{};
  };
  const std::string differs = "log-probabilities differ beyond rounding";
  for (const auto& [text, verdict, reason, where, floor] : std::vector<Case>{
           {dump(32, none), "exact", "", ""},
           {dump(32, rounding), "equal up to rounding", "", ""},
           {dump(32, coarse, half), "equal up to rounding", "", ""},
           {dump(32, coarse, untyped), "equal up to rounding", "", ""},
           {dump(32, coarse, untyped), "DIFFERENT", differs, "step 0, sample 0, token 0 at position 0: ", healthy},
           {dump(32, fault), "DIFFERENT", differs, "step 0, sample 0, token 0 at position 0: generator -0.95"},
           {dump(2, coarse, half), "inconclusive", "fewer than 256 tokens: too few to tell rounding from a fault", ""},
           {dump(32, [](int s, int i) { return s == 5 && i == 3 ? NAN : 0.0; }), "FAILED",
            "values are not finite: step 0, sample 5, token 3 at position 3: the generator has nan", ""}}) {
    write_file(path, text);
    const Answer found = compare(path, "", floor);
    CHECK(compare::name(found.verdict) == verdict);
    CHECK(compare::line_of(found.lines, {"reason"}) == reason);
    CHECK(compare::line_of(found.lines, {"where"}).substr(0, where.size()) == where);
    CHECK(compare::line_of(found.lines, {"where"}).empty() == where.empty());
  }
  const Answer found = compare(healthy, "", "");
  CHECK(compare::line_of(found.lines, {"compared"}) == "512 tokens of 32 sequences in 4 steps; 0 equal in bits");
  CHECK(found.curves.steps.size() == 4);
  CHECK(found.curves.positions.size() == 16);
  CHECK(found.curves.versions.at(3) == std::pair<std::int64_t, std::int64_t>(1, 1));
}

TEST_CASE("rollout answer: rounding measured in tokens that are more certain explains more in others") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rollout-0.jsonl"), healthy = folder.file("rollout-1.jsonl");
  write_file(healthy, dump(
                          64, [](int s, int i) { return (i == 0 ? 1e-2 : 1e-6) * (s % 2 ? 1 : -1); },
                          {{"generator_dtype", "BF16"}}, -1e-4));
  const auto verdict = [&](double apart) {
    write_file(path, dump(64, [&](int s, int i) { return (s + i) % 2 ? apart : -apart; }));
    return compare::name(compare(path, "", healthy).verdict);
  };
  CHECK(verdict(1.2e-2) == "equal up to rounding");
  CHECK(verdict(4e-2) == "DIFFERENT");
}

TEST_CASE("rollout answer: values above 0 are no log-probabilities, but for a bit that rounding leaves") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rollout-0.jsonl");
  const auto answer = [&](auto apart, double later) {
    write_file(path, dump(32, apart, {{"generator_dtype", "BF16"}}, later));
    return compare(path, "", "");
  };
  for (const double gen : {2.0, 0.125}) {  // minus the logarithm, a small probability
    const Answer found = answer([&](int, int) { return -1 - gen; }, -1);
    CHECK(compare::name(found.verdict) == "FAILED");
    CHECK(compare::line_of(found.lines, {"reason"}) ==
          "a log-probability is never above 0: step 0, sample 0, token 0 at position 0: the generator has " +
              to_text(gen) + " and 511 more");
  }
  const Answer found = answer([](int s, int i) { return (s + i) % 2 ? 2e-2 : -2e-2; }, -1e-3);
  CHECK(compare::name(found.verdict) == "equal up to rounding");
}

TEST_CASE("rollout answer: equal tokens of a training that did not end well decide nothing, until it resumes") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rollout-0.jsonl");
  std::string text = dump(32, none) + R"({"zs_rollout": 1, "end": true, "how": "exception E: boom"})"
                                      "\n";
  write_file(path, text);
  Answer found = compare(path, "", "");
  CHECK(compare::name(found.verdict) == "inconclusive");
  CHECK(compare::line_of(found.lines, {"failure"}) == path + " says how the training ended: exception E: boom");
  text += R"({"zs_rollout": 1})"
          "\n"
          R"({"zs_rollout": 1, "end": true, "how": "whole"})"
          "\n";
  write_file(path, text);
  found = compare(path, "", "");
  CHECK(compare::name(found.verdict) == "exact");
  CHECK(found.ended);
}

TEST_CASE("rollout answer: a recording whose log-probabilities differ is not consistent") {
  const auto joined_with = [](compare::Verdict verdict) {
    compare::Holdings things;
    things.add("x");
    compare::Ledger ledger(things, things);
    ledger.compared("x", verdict);
    probe::Answer made;
    Answer found{.verdict = ledger.settle()};
    found.lines = {{"verdict", "x"}, {"relation", "shift by +1"}, {"difference", "mean |d| 1"}, {"also", "y"}};
    join(made, found);
    return made;
  };
  using enum compare::Verdict;
  CHECK(joined_with(different).line({"headline"}) == "generator and trainer differ: shift by +1");
  CHECK(joined_with(different).apart);
  CHECK(joined_with(different).line({"rollout also"}) == "y");
  CHECK_FALSE(joined_with(inconclusive).apart);
  CHECK(joined_with(inconclusive).line({"headline"}).empty());
  CHECK(joined_with(rounding).line({"rollout also"}).empty());
  CHECK(joined_with(rounding).line({"rollout difference"}) == "mean |d| 1");
}

}  // namespace
}  // namespace zs::rollout

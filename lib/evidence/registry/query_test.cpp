// SPDX-License-Identifier: Apache-2.0
#include "registry/query.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "registry/listing.hpp"

namespace zs::registry {
namespace {

Runs table(const std::vector<Fields>& records) { return assemble(records); }

const Runs kRuns = table({
    {{"run_id", "2026_a1"},
     {"run_name", "one"},
     {"model.name", "gpt2"},
     {"training.learning_rate", "6e-4"},
     {"final_valid_loss", "3.5"},
     {"zero.stage", "3"}},
    {{"run_id", "2026_a2"},
     {"run_name", "two"},
     {"model.name", "gpt2"},
     {"training.learning_rate", "0.0006"},
     {"final_valid_loss", "nan"}},
    {{"run_id", "2026_b1"},
     {"run_name", "two"},
     {"model.name", "tiny"},
     {"training.learning_rate", "1e-3"},
     {"final_valid_loss", "10"},
     {"my.name", "x"}},
    {{"run_id", "2026_b2"},
     {"run_name", "three"},
     {"model.name", "gpt2-xl"},
     {"final_valid_loss", "9"},
     {"timestamp", "2026-11-20T10:00:00Z"}},
    {{"run_id", "2026_b3"}, {"run_name", "four"}, {"final_valid_loss", "diverged"}},
});

/// The names of the runs that answer, as one text.
std::string names(const Question& question) {
  std::string text;
  for (const std::size_t row : ask(kRuns, question).rows)
    text += (text.empty() ? "" : " ") + kRuns.text(row, "run_id").substr(5);
  return text;
}
std::string filtered(const std::vector<std::string>& filters, bool any = false) {
  return names({.filters = filters, .any = any});
}

}  // namespace

TEST_CASE("query: numbers compare as numbers, texts as texts") {
  CHECK(filtered({"training.learning_rate=0.0006"}) == "a1 a2");
  CHECK(filtered({"training.learning_rate=6E-4"}) == "a1 a2");
  CHECK(filtered({"training.learning_rate!=6e-4"}) == "b1 b2 b3");
  CHECK(filtered({"training.learning_rate>6e-4"}) == "b1");
  CHECK(filtered({"training.learning_rate>=6e-4"}) == "a1 a2 b1");
  CHECK(filtered({"final_valid_loss<10"}) == "a1 b2");
  CHECK(filtered({"final_valid_loss<=10"}) == "a1 b1 b2");
  CHECK(filtered({"final_valid_loss=nan"}) == "a2");
  CHECK(filtered({"final_valid_loss>=nan"}) == "");
  CHECK(filtered({"final_valid_loss=diverged"}) == "b3");
  CHECK(filtered({"timestamp>2026-11-20"}) == "b2");
  CHECK(filtered({"model.name="}) == "b3");
  CHECK(filtered({"model.name!="}) == "a1 a2 b1 b2");
  CHECK(filtered({"model.name~^gpt2$"}) == "a1 a2");
  CHECK(filtered({"model.name~gpt"}) == "a1 a2 b2");
  CHECK(filtered({"model.name!~gpt"}) == "b1 b3");
}

TEST_CASE("query: filters are joined by and, or by or") {
  CHECK(filtered({"model.name=gpt2", "final_valid_loss=3.5"}) == "a1");
  CHECK(filtered({"model.name=tiny", "final_valid_loss=3.5"}, true) == "a1 b1");
  CHECK(filtered({}) == "a1 a2 b1 b2 b3");
  CHECK_THROWS_AS(filtered({"model.name=tiny"}, true), zs::UsageError);
}

TEST_CASE("query: a column is meant by name, alias, option of zs-train or its only ending") {
  CHECK(filtered({"learning_rate=1e-3"}) == "b1");
  CHECK(filtered({"zero_stage=3"}) == "a1");
  CHECK(filtered({"model.seq_length=3"}) == "");  // a setting that no run has
  CHECK(resolve_column(kRuns, "run.name") == "run_name");
  CHECK(resolve_column(kRuns, "valid_loss") == "final_valid_loss");
  CHECK_THROWS_WITH_AS(resolve_column(kRuns, "name"), "column 'name' may be any of model.name, my.name", zs::Error);
  CHECK_THROWS_WITH_AS(resolve_column(kRuns, "final_valid_los"),
                       "no run has a column 'final_valid_los', did you mean 'final_valid_loss'?", zs::Error);
  CHECK_THROWS_WITH_AS(resolve_column(kRuns, "learning_rte"),
                       "no run has a column 'learning_rte', did you mean 'learning_rate'?", zs::Error);
  CHECK(parse_filter(kRuns, "dataset_size<=10M").value == "10000000");
  CHECK(parse_filter(kRuns, "my.name=10M").value == "10M");
  for (const char* const bad : {"model.name", "=x", "", "model.name~("})
    CHECK_THROWS_AS(parse_filter(kRuns, bad), zs::UsageError);
}

TEST_CASE("query: sorting puts numbers by value, then nan, then texts, then what is absent") {
  CHECK(names({.sort_by = "final_valid_loss"}) == "a1 b2 b1 a2 b3");
  CHECK(names({.sort_by = "final_valid_loss", .descending = true}) == "b1 b2 a1 a2 b3");
  CHECK(names({.sort_by = "learning_rate"}) == "a1 a2 b1 b2 b3");
  CHECK(names({.sort_by = "learning_rate", .descending = true}) == "b1 a1 a2 b2 b3");
  CHECK(names({.sort_by = "run_name", .descending = true, .limit = 2}) == "a2 b1");
  CHECK(names({.descending = true, .limit = 1}) == "b3");
}

TEST_CASE("query: a run is meant by id, the beginning of its id, or its name") {
  CHECK(find_run(kRuns, "2026_a1") == 0);
  CHECK(find_run(kRuns, "three") == 3);
  CHECK_THROWS_WITH_AS(find_run(kRuns, "2026_b"), "3 runs begin with '2026_b': 2026_b1, 2026_b2, 2026_b3", zs::Error);
  CHECK_THROWS_WITH_AS(find_run(kRuns, "two"), "2 runs have the name 'two': 2026_a2, 2026_b1", zs::Error);
  CHECK_THROWS_WITH_AS(find_run(kRuns, "fuor"), "no run 'fuor', did you mean 'four'?", zs::Error);
}

TEST_CASE("query: what tells runs apart comes first, and what is hidden is not shown") {
  const auto columns =
      ask(kRuns, {.filters = {"model.name=gpt2"}, .sort_by = "final_valid_loss", .hide = {"status"}, .telling = true})
          .columns;
  CHECK(columns == std::vector<std::string>{"run_id", "run_name", "final_valid_loss", "model.name",
                                            "training.learning_rate", "zero.stage", "timestamp"});
  CHECK_THROWS_AS(ask(kRuns, {.show = {"run_id"}, .hide = {"run_id"}}), zs::UsageError);
}

TEST_CASE("sheet: a difference shows only what differs, numbers as numbers") {
  const Sheet sheet = difference(kRuns, 0, 1);
  CHECK(sheet.header == std::vector<std::string>{"topic", "field", "2026_a1", "2026_a2"});
  REQUIRE(sheet.rows.size() == 2);
  CHECK(sheet.rows[0] == std::vector<std::string>{"configuration", "zero.stage", "3", ""});
  CHECK(sheet.rows[1] == std::vector<std::string>{"metric", "final_valid_loss", "3.5", "nan"});
}

TEST_CASE("query: a regular expression takes time that grows with the value only") {
  const Runs runs = assemble({});
  const std::string many(1 << 15, 'a');
  CHECK_FALSE(parse_filter(runs, "run_name~(a+)+b").holds(many));
  CHECK_FALSE(parse_filter(runs, "run_name~.*b").holds(many));
  CHECK(parse_filter(runs, "run_name~^(a+)+$").holds(many));
}

TEST_CASE("sheet: the forms") {
  const Sheet sheet = {{"a", "b c"}, {{"1.50", "x,\"y\t"}, {"nan", ""}, {"true", "é"}}};
  CHECK(to_tsv(sheet) == "a\tb c\n1.50\tx,\"y\\t\nnan\t\ntrue\té\n");
  CHECK(to_csv(sheet) == "a,b c\n1.50,\"x,\"\"y\t\"\nnan,\ntrue,é\n");
  CHECK(to_json(sheet) ==
        "[\n {\"a\":1.5,\"b c\":\"x,\\\"y\\t\"},\n {\"a\":\"nan\"},\n {\"a\":true,\"b c\":\"é\"}\n]\n");
  std::size_t left_out = 9;
  const Sheet wide = {{"id", "value", "long"}, {{"x", "0.12345678901", std::string(50, 'y')}}};
  CHECK(fitted(wide, 0, left_out).rows[0] == std::vector<std::string>{"x", "0.123457", std::string(39, 'y') + "…"});
  CHECK(left_out == 0);
  CHECK(fitted(wide, 12, left_out).header == std::vector<std::string>{"id", "value"});
  CHECK(left_out == 1);
  CHECK(fitted(wide, 1, left_out).header == std::vector<std::string>{"id"});
}

}  // namespace zs::registry

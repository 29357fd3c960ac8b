// SPDX-License-Identifier: Apache-2.0
#include "summary/difference.hpp"

#include <doctest/doctest.h>

#include "stat/summary.hpp"

namespace zs::summary {
namespace {

using Words = std::vector<std::string>;

/// A summary of runs with these attributes and three steps each.
metric::Store of(const std::vector<attribute::Facts>& runs) {
  metric::Store store;
  for (const attribute::Facts& facts : runs) {
    metric::Run run{"run" + std::to_string(store.runs.size()), facts, {}};
    for (const char* const name : {"step", "loss", "iteration_time"}) run.records.column(name);
    for (const double step : {1.0, 2.0, 3.0}) {
      run.records.column("step").integers().push_back(static_cast<std::int64_t>(step));
      run.records.column("loss").reals().push_back(4 - step);
      run.records.column("iteration_time").reals().push_back(step == 3 ? 9 : step / 8);
    }
    store.runs.push_back(std::move(run));
  }
  return store;
}

std::vector<Condition> conditions_of(const metric::Store& store) { return conditions(store, "s.h5"); }

Words varied(const std::vector<attribute::Facts>& runs) {
  const metric::Store store = stat::summarize(of(runs), {}).store;
  return parameters(conditions_of(store));
}

std::string unlike(const std::vector<attribute::Facts>& runs) {
  const metric::Store store = stat::summarize(of(runs), {}).store;
  const std::vector<Condition> conditions = conditions_of(store);
  std::vector<const Condition*> pointers;
  for (const Condition& one : conditions) pointers.push_back(&one);
  return unlike_work(pointers);
}

}  // namespace

TEST_CASE("what was varied is what somebody set, not what follows or where it ran") {
  CHECK(
      varied({{{"weight_decay", "0.1"}, {"state_digest", "aa"}, {"slurm_job_id", "1"}, {"host", "a"}, {"cpu", "x"}},
              {{"weight_decay", "0.2"}, {"state_digest", "bb"}, {"slurm_job_id", "2"}, {"host", "b"}, {"cpu", "y"}}}) ==
      Words{"weight_decay"});
  // The layers are set; that the parameters are more follows from it.
  CHECK(varied({{{"num_layers", "2"}, {"model.parameters", "10"}},
                {{"num_layers", "4"}, {"model.parameters", "20"}}}) == Words{"model.num_layers"});
  // Where nothing else differs, what the runs found out does.
  CHECK(varied({{{"cpu", "x"}}, {{"cpu", "y"}}}) == Words{"cpu"});
  CHECK(varied({{{"flavour", "lion"}, {"seed", "1"}}, {{"flavour", "adamw"}, {"seed", "2"}}}) ==
        Words{"seed", "flavour"});
  CHECK(varied({{{"learning_rate", "1e-3"}}, {{"learning_rate", "0.001"}}}).empty());
}

TEST_CASE("an attribute that groups the conditions as one before it does is no further parameter") {
  const auto run = [](const char* stage, bool compiled) {
    return attribute::Facts{
        {"zero_stage", stage}, {"deepcompile", compiled ? "true" : "false"}, {"passes", compiled ? "prefetch" : ""}};
  };
  CHECK(varied({run("1", true), run("1", false), run("3", true), run("3", false)}) ==
        Words{"zero_stage", "deepcompile"});
}

TEST_CASE("time and memory are compared between runs that do the same work") {
  const attribute::Facts run = {
      {"model.name", "tiny"}, {"world_size", "2"}, {"batch_size", "1"}, {"gradient_accumulation_steps", "2"}};
  attribute::Facts other = run;
  other["learning_rate"] = "1", other["zero_stage"] = "3", other["world_size"] = "1",
  other["gradient_accumulation_steps"] = "4";
  CHECK(unlike({run, other}).empty());
  other["gradient_accumulation_steps"] = "8";
  CHECK(unlike({run, other}) == "they differ in global batch (4 and 8)");
  other = run;
  other["model.name"] = "gpt2";
  CHECK(unlike({run, other}) == "they differ in model (tiny and gpt2)");
  CHECK(unlike({{{"seed", "1"}}, {{"seed", "1"}}}) == "the model of run0 is not known");
}

TEST_CASE("a run's statistics are those of the summary") {
  stat::SummaryRule rule;
  rule.timing.warmup = 1;
  rule.timing.outliers = stat::Outliers::above_p99;
  const metric::Store store = stat::summarize(of({{{"model.name", "tiny"}}}), rule).store;
  const std::vector<Condition> conditions = conditions_of(store);
  const Member& member = conditions.at(0).members.at(0);
  CHECK(member["time_given"] == 3);
  CHECK(member["warmup_points"] == 1);
  CHECK(member["time_removed"] == 1);
  CHECK(member["time_points"] == 1);
  CHECK(member["time_mean"] == 0.25);
  CHECK(member.run->records.find("timed")->integers() == std::vector<std::int64_t>{0, 1, 0});
  CHECK(member["final_loss"] == 1);
  CHECK(conditions.at(0)["time_mean"] == member["time_mean"]);
}

}  // namespace zs::summary

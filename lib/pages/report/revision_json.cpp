// SPDX-License-Identifier: Apache-2.0
// A comparison of revisions for programs.
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/pages.hpp"
#include "stat/columns.hpp"
#include "stat/sample.hpp"

namespace zs::report {
namespace {

using Json = nlohmann::ordered_json;

const char* name(Verdict verdict) {
  return verdict == Verdict::good ? "good" : verdict == Verdict::bad ? "bad" : "open";
}

Json finite_number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

template <typename Value>
Json known(const std::optional<Value>& value) {
  return value ? finite_number(static_cast<double>(*value)) : Json();
}

Json json(const Answer& answer) { return {{"verdict", name(answer.verdict)}, {"text", answer.text.plain()}}; }

Json json(const Answer& answer, const summary::Ratio& ratio) {
  Json made = json(answer);
  made["ratio"] = finite_number(ratio.value);
  made["low"] = finite_number(ratio.low);
  made["high"] = finite_number(ratio.high);
  made["confidence"] = finite_number(ratio.confidence);
  made["p"] = finite_number(ratio.p);
  made["smallest_effect"] = finite_number(ratio.smallest);
  made["differs"] = ratio.differs();
  return made;
}

Json json(const Comparison& one) {
  Json numerics = json(one.numerics);
  numerics["found"] = one.numerics.found;
  numerics["from_step"] = one.numerics.from_step ? Json(*one.numerics.from_step) : Json();
  numerics["loss_difference"] = known(one.numerics.loss_difference);
  numerics["envelope"] = known(one.numerics.envelope);
  return {{"revision", one.other->name},
          {"pairs", one.ratios.pairs},
          {"numerics", std::move(numerics)},
          {"time", json(one.time, one.ratios.time)},
          {"memory", json(one.memory, one.ratios.memory)}};
}

Json json(const summary::Member& member) {
  Json made = {{"run", member.run->name},
               {"status", member.status},
               {"reason", member.reason},
               {"points", member.count("time_points")},
               {"time_mean", known(member["time_mean"])},
               {"time_median", known(member["time_median"])},
               {"peak_mem", known(member["peak_mem"])}};
  made["final_loss"] = known(member["final_loss"]);
  made["steps"] = made["losses"] = made["iteration_times"] = Json::array();
  for (const stat::Point& point : member.series().points) {
    made["steps"].push_back(metric::is_absent(point.step) ? Json() : Json(point.step));
    made["losses"].push_back(finite_number(point.loss));
    made["iteration_times"].push_back(finite_number(point.time));
  }
  made["peak_mems"] = Json::array();
  for (const stat::ColumnPoint& point : stat::column_points(*member.run, "peak_mem"))
    made["peak_mems"].push_back(finite_number(point.value));
  made["attributes"] = member.run->attributes;
  return made;
}

/// Mean and standard deviation over the runs of a condition that have the value.
Json over_runs(const Condition& condition, summary::Member::Column column) {
  const stat::Sample values = condition.values(column);
  return {{"runs", values.size()},
          {"mean", values.empty() ? Json() : finite_number(stat::mean(values))},
          {"std", finite_number(stat::deviation(values))}};
}

}  // namespace

std::string to_json(const Comparisons& comparisons, const Findings& found, const Gate& gate) {
  Json made = {{"verdict", name(comparisons.verdict)},
               {"label", comparisons.label},
               {"text", comparisons.text.plain()},
               {"probe", comparisons.probe.sentence.empty()
                             ? Json()
                             : Json{{"verdict", comparisons.probe.verdict}, {"headline", comparisons.probe.sentence}}},
               {"baseline", comparisons.baseline->name},
               {"max_slowdown", gate.max_slowdown}};
  for (const Comparison& one : comparisons.others) made["comparisons"].push_back(json(one));
  for (const Condition& condition : found.conditions) {
    Json revision = {{"revision", condition.name}, {"status", condition.status}};
    revision["final_loss"] = over_runs(condition, "final_loss");
    revision["iteration_time"] = over_runs(condition, "time_mean");
    revision["peak_mem"] = over_runs(condition, "peak_mem");
    revision["runs"] = Json::array();
    for (const summary::Member& member : condition.members) revision["runs"].push_back(json(member));
    made["revisions"].push_back(std::move(revision));
  }
  return made.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zs::report

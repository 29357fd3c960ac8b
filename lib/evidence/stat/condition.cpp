// SPDX-License-Identifier: Apache-2.0
#include "stat/condition.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "metric/unit.hpp"
#include "stat/steps.hpp"

namespace zs::stat {
namespace {

using metric::is_absent;

constexpr const char* kNone = "(none)";

std::vector<bool> marks(const Sample& seconds, Outliers rule) {
  if (rule != Outliers::above_p99) return far_out(seconds);
  const double limit = quantile(seconds, 0.99);
  std::vector<bool> above;
  for (const double value : seconds) above.push_back(value > limit);
  return above;
}

void check_keys(const metric::Store& store, const std::vector<std::string>& by) {
  std::set<std::string> known;
  for (const metric::Run& run : store.runs) {
    for (const auto& [key, value] : run.attributes) known.insert(key);
  }
  for (const std::string& key : by) {
    if (known.count(key) == 0) {
      throw Error("no run has an attribute '" + key + "'" + did_you_mean(key, {known.begin(), known.end()}));
    }
  }
}

std::string condition_name(const metric::Run& run, const std::vector<std::string>& by) {
  const std::string repeated = run.attribute("repetition_of");
  if (by.empty()) return repeated.empty() ? run.name : repeated;
  std::string name;
  for (const std::string& key : by) {
    const std::string value = run.attribute(key).empty() ? kNone : run.attribute(key);
    name += (name.empty() ? "" : " ") + (by.size() > 1 ? key + "=" : "") + value;
  }
  return name;
}

/// The number of points within the first steps that the run's own mean leaves out. Points without a step count as one
/// each.
std::size_t own_warmup(const metric::Run& run, const Series& series, const std::vector<Point*>& timed) {
  std::optional<std::int64_t> steps = parse_int(run.attribute("timing_warmup"));
  if (!steps) steps = parse_int(run.attribute("warmup_step"));
  if (!steps || *steps < 0) return kWarmup;
  if (counts_micro_steps(run, series)) *steps *= parse_int(run.attribute("gradient_accumulation_steps")).value_or(1);
  const std::int64_t resumed = parse_int(run.attribute("resumed_after_step")).value_or(0);
  const std::int64_t start =
      timed.front()->step > resumed ? resumed : 0;  // records of earlier attempts may be there too
  std::size_t count = 0;
  while (count < timed.size()) {
    const std::int64_t step = timed[count]->step;
    if ((is_absent(step) ? static_cast<std::int64_t>(count) + 1 : step - start) > *steps) break;
    ++count;
  }
  return count;
}

}  // namespace

Timing timing(const metric::Run& run, Series& series, const TimingRule& rule) {
  std::vector<Point*> timed;
  Sample seconds;
  for (Point& point : series.points) {
    point.timed = false;
    if (is_absent(point.time)) continue;
    timed.push_back(&point);
    seconds.push_back(point.time);
  }
  Timing made;
  made.given = timed.size();
  if (timed.empty()) return made;
  made.asked = rule.find_warmup ? warmup_length(seconds) : rule.warmup ? *rule.warmup : own_warmup(run, series, timed);
  made.warmup = std::min(made.asked, timed.size() - 1);
  seconds.erase(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(made.warmup));
  const std::vector<bool> out = marks(seconds, rule.outliers);
  made.marked = static_cast<std::size_t>(std::ranges::count(out, true));
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (out[i] && rule.outliers != Outliers::keep) {
      ++made.removed;
      continue;
    }
    made.seconds.push_back(seconds[i]);
    Point& point = *timed[made.warmup + i];
    point.timed = true;
    if (is_absent(point.tokens)) continue;
    made.tokens += point.tokens;
    made.token_seconds += point.time;
  }
  return made;
}

void mark_timed(metric::Run& run, const Series& series) {
  std::erase_if(run.records.columns, [](const metric::Column& column) { return column.name == "timed"; });
  const metric::Column* const times = run.records.find("iteration_time");
  if (!times) return;
  metric::Column timed("timed", "", metric::Type::integer);
  for (std::size_t row = 0; row < times->size(); ++row)
    timed.integers().push_back(times->absent(row) ? metric::kAbsentInteger : 0);
  for (const Point& point : series.points) {
    if (point.timed) timed.integers()[point.time_row] = 1;
  }
  run.records.columns.push_back(std::move(timed));
}

std::string loss_unit(const std::vector<Condition>& conditions) {
  std::string common;
  for (const Condition& condition : conditions) {
    for (const Member& member : condition.members) {
      const std::string& one = member.series.loss_unit;
      if (!common.empty() && !one.empty() && one != common) return metric::kLossOfImages;
      if (!one.empty()) common = one;
    }
  }
  return common.empty() ? metric::kLossOfTokens : common;
}

std::vector<Condition> conditions(const metric::Store& store, const std::vector<std::string>& by,
                                  const TimingRule& rule) {
  check_keys(store, by);
  std::vector<Condition> found;
  for (const metric::Run& run : store.runs) {
    const std::string name = condition_name(run, by);
    auto place = std::ranges::find(found, name, &Condition::name);
    if (place == found.end()) place = found.insert(found.end(), Condition{name, {}});
    Series points = series(run);
    Judgement judgement = judge(run, points);
    Timing times = timing(run, points, rule);
    place->members.push_back({&run, std::move(points), std::move(judgement), std::move(times)});
  }
  return found;
}

}  // namespace zs::stat

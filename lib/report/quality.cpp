// SPDX-License-Identifier: Apache-2.0
// How far the data can be trusted, what to do, and where every number came from.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/number.hpp"
#include "plot/unit.hpp"
#include "report/batch.hpp"

namespace zs::report {
namespace {

constexpr std::int64_t kFewPoints = 10;   // fewer make a wide interval, and one outlier moves the mean
constexpr double kOutlier = 5;            // scaled median deviations from the median

/// Values of a record column, absent ones left out.
std::vector<double> values(const metric::Run& run, const char* name) {
  std::vector<double> result;
  const metric::Column* const column = run.records.find(name);
  for (std::size_t row = 0; column && column->type() != metric::Type::text && row < column->size(); ++row) {
    if (!column->absent(row)) result.push_back(column->real(row));
  }
  return result;
}

double median(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<long>(half), values.end());
  if (values.size() % 2 == 1) return values[half];
  return (values[half] + *std::max_element(values.begin(), values.begin() + static_cast<long>(half))) / 2;
}

/// How many of the last `used` times stand far from their median.
std::size_t outliers(std::vector<double> times, std::size_t used) {
  times.erase(std::remove_if(times.begin(), times.end(), [](double t) { return !std::isfinite(t); }), times.end());
  if (used < times.size()) times.erase(times.begin(), times.end() - static_cast<long>(used));
  if (times.size() < 5) return 0;
  const double middle = median(times);
  std::vector<double> distances;
  for (const double time : times) distances.push_back(std::abs(time - middle));
  const double spread = 1.4826 * median(distances);
  return static_cast<std::size_t>(std::count_if(times.begin(), times.end(), [&](double t) { return spread > 0 && std::abs(t - middle) > kOutlier * spread; }));
}

Text about(const Condition& condition, const std::string& sentence) { return code(condition.name) + Text(": " + sentence); }

/// What is wrong with the records of one condition.
void examine(const Condition& condition, std::vector<Text>& remarks) {
  for (const metric::Run* const run : condition.members) {
    const std::string which = condition.members.size() > 1 ? "run " + run->name + ": " : "";
    const std::vector<double> losses = values(*run, "loss"), steps = values(*run, "step");
    const auto wild = static_cast<std::size_t>(std::count_if(losses.begin(), losses.end(), [](double v) { return !std::isfinite(v); }));
    if (wild > 0) remarks.push_back(about(condition, which + counted(wild, "loss value") + " of " + std::to_string(losses.size()) + " not finite."));
    const std::size_t rows = run->records.rows();
    if (losses.size() < rows) remarks.push_back(about(condition, which + counted(rows - losses.size(), "record") + " of " + std::to_string(rows) + " without a loss."));
    std::size_t backwards = 0, gaps = 0;
    double stride = 0;
    for (std::size_t i = 1; i < steps.size(); ++i) {
      const double delta = steps[i] - steps[i - 1];
      if (delta <= 0) ++backwards;
      else if (stride == 0) stride = delta;
      else if (delta > stride) ++gaps;
    }
    if (backwards > 0) remarks.push_back(about(condition, which + counted(backwards, "record") + " at a step not after the one before it."));
    if (gaps > 0) remarks.push_back(about(condition, which + counted(gaps, "gap") + " between logged steps (they are usually " + to_text(static_cast<std::int64_t>(stride)) + " apart)."));
    const std::size_t far = outliers(values(*run, "iteration_time"), static_cast<std::size_t>(condition.time_points.value_or(0)));
    if (far > 0) remarks.push_back(about(condition, which + counted(far, "iteration time") + " further than " + to_text(kOutlier) + " scaled median deviations from the median; kept."));
    for (const auto& [key, value] : run->attributes) {
      if (key.find("fault") != std::string::npos && value != "0") remarks.push_back(about(condition, which + "the parser noted " + key + " = " + value + "."));
    }
  }
  const auto points = condition.time_points;
  if (!condition.bad() && points && *points < kFewPoints) {
    remarks.push_back(about(condition, "only " + counted(static_cast<std::size_t>(std::max<std::int64_t>(0, *points)), "iteration time") + " after warm-up: its interval is weak."));
  }
}

}  // namespace

Section quality_section(const metric::Store& store, const Findings& found) {
  Section section{"Data quality", {}};
  List list;
  for (const Condition* const condition : found.bad) {
    list.items.push_back(code(condition->name) + Text(": ") + Text(bad(status_text(*condition))) +
                         Text(condition->points.value_or(0) == 0 ? "; it has no values." : "; what it logged is shown but not compared."));
  }
  for (const Condition* const condition : found.unknown) {
    list.items.push_back(about(*condition, "status " + condition->status + ": whether it is complete cannot be told."));
  }
  for (const Condition& condition : found.conditions) examine(condition, list.items);
  std::map<std::string, std::vector<std::string>> hosts;
  std::size_t unsourced = 0, records = 0;
  for (const metric::Run& run : store.runs) {
    if (!run.attribute("host").empty()) hosts[run.attribute("host")].push_back(run.name);
    unsourced += run.attribute("source_sha256").empty();
    records += run.records.rows();
  }
  if (hosts.size() > 1) {
    list.items.push_back(Text("The runs were on " + counted(hosts.size(), "host") + ": differences in time may be differences between hosts."));
  }
  if (store.runs.empty()) list.items.emplace_back("The summary does not hold the runs it was made from: its numbers cannot be traced.");
  else if (unsourced > 0) list.items.push_back(Text("For " + counted(unsourced, "run") + " of " + std::to_string(store.runs.size()) + " no checksum of the log was kept."));
  if (!found.without_digest.empty() && found.without_digest.size() < found.healthy.size()) {
    list.items.push_back(Text("Without a state digest: ") + names(found.without_digest) + Text("."));
  }
  if (list.items.empty()) {
    section.blocks.emplace_back(Paragraph{Text("Nothing is wrong with the data: " + counted(records, "record") + " in " + counted(store.runs.size(), "run") +
                                               ", every loss finite, steps in order without gaps, no outlying iteration time.")});
  } else {
    section.blocks.emplace_back(Paragraph{Text(counted(list.items.size(), "remark") + " on " + counted(records, "record") + " in " + counted(store.runs.size(), "run") + ":")});
    section.blocks.emplace_back(std::move(list));
  }
  return section;
}

Section recommendation_section(const Findings& found) {
  Section section{"Recommendations", {}};
  List list;
  if (!found.bad.empty()) list.items.push_back(Text("Find out why ") + names(found.bad) + Text(" did not complete before using this comparison; the exit code and the end of the log are the place to start."));
  if (found.digests_differ()) list.items.push_back(Text("Do not choose by speed before the difference in bits is explained: run ") + Text(code("zs-verify")) + Text(" on the first two conditions that differ."));
  const Best& time = found.time;
  if (time.compared > 1 && time.intervals && time.level.empty()) {
    list.items.push_back(Text(strong("For time: ")) + code(time.winner->name) + Text(". The intervals support it."));
  } else if (time.compared > 1) {
    list.items.push_back(Text(strong("For time: ")) + Text("none; the intervals do not support a choice") +
                         (time.level.empty() ? Text() : Text(" between ") + code(time.winner->name) + Text(" and ") + names(time.level)) +
                         Text(". More steps, or repeated runs, would narrow them."));
  }
  const Best& memory = found.memory;
  if (memory.compared > 1 && memory.level.empty()) list.items.push_back(Text(strong("For memory: ")) + code(memory.winner->name) + Text("."));
  else if (memory.compared > 1 && memory.level.size() + 1 < memory.compared) {
    list.items.push_back(Text(strong("For memory: ")) + code(memory.winner->name) + Text(" or ") + names(memory.level) + Text(", which are within one percent."));
  } else if (memory.compared > 1) {
    list.items.push_back(Text(strong("For memory: ")) + Text("none; all are within one percent."));
  }
  if (found.healthy.size() > 1 && found.gap) {
    if (found.equal_losses) list.items.push_back(Text(strong("For loss: ")) + Text("none is better; the losses are equal."));
    else list.items.push_back(Text(strong("For loss: ")) + Text("none; a difference between single runs is not a reason to choose. Repeat each condition with other seeds to get an interval."));
  }
  if (!found.without_digest.empty() && found.healthy.size() > 1) {
    list.items.push_back(Text("Train with ") + Text(code("zs-train")) + Text(", or log a state digest, to learn whether the conditions compute the same bits."));
  }
  if (list.items.empty()) section.blocks.emplace_back(Paragraph{"The data support no recommendation."});
  else section.blocks.emplace_back(std::move(list));
  return section;
}

Section appendix_section(const metric::Store& store, const Findings& found, const std::string& source) {
  Section section{"Appendix", {}};
  Grid logs{"Runs and their logs", {"run", "log", "SHA-256 of the log", "exit code", "state digest"}, {false, false, false, false, false}, {}};
  for (const metric::Run& run : store.runs) {
    const auto cell = [&](const std::string& key) { return Cell{run.attribute(key).empty() ? Text("-") : Text(code(run.attribute(key)))}; };
    logs.rows.push_back({{Text(code(run.name))}, cell("source"), cell("source_sha256"), cell("exit_code"), cell("state_digest")});
  }
  if (!logs.rows.empty()) section.blocks.emplace_back(std::move(logs));
  Grid commands{"Commands", {"run", "command"}, {false, false}, {}};
  for (const metric::Run& run : store.runs) {
    if (!run.attribute("command").empty()) commands.rows.push_back({{Text(code(run.name))}, {Text(code(run.attribute("command")))}});
  }
  if (!commands.rows.empty()) section.blocks.emplace_back(std::move(commands));
  Grid about{"This summary", {"what", "value"}, {false, false}, {}};
  about.rows.push_back({{Text("input")}, {Text(code(source))}});
  for (const auto& [key, value] : store.attributes) {
    if (!value.empty()) about.rows.push_back({{Text(key)}, {Text(value)}});
  }
  about.rows.push_back({{Text("conditions")}, {Text(std::to_string(found.conditions.size()))}});
  section.blocks.emplace_back(std::move(about));
  return section;
}

}  // namespace zs::report

// SPDX-License-Identifier: Apache-2.0
#include "stat/summary.hpp"

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "stat/columns.hpp"
#include "stat/divergence.hpp"
#include "stat/outlier.hpp"
#include "stat/summary_columns.hpp"

namespace zs::stat {
namespace {

/// Writes the losses of a summary in the unit of its runs.
void name_loss_unit(metric::Store& store, const std::string& unit) {
  const auto name = [&](metric::Table& table) {
    for (metric::Column& column : table.columns) {
      if (column.unit == kLossUnit) column.unit = unit;
    }
  };
  name(*store.summary);
  for (auto* const tables : {&store.curves, &store.tables}) {
    for (auto& [key, table] : *tables) name(table);
  }
}

/// A note about points left out at the start, and a warning if runs had fewer points than requested.
std::string warmup_note(const std::vector<Condition>& conditions, const TimingRule& rule,
                        std::vector<std::string>& warnings) {
  const std::size_t usual = rule.warmup.value_or(kWarmup);
  const std::string asked = rule.find_warmup ? "auto" : std::to_string(usual);
  std::string used, few, same;
  std::size_t more = 0;  // runs with few points, behind the first
  std::size_t timed = 0, named = 0, alike = 0;
  for (const Condition& condition : conditions) {
    for (const Member& member : condition.members) {
      const Timing& timing = member.timing;
      timed += timing.given > 0;
      if (timing.given == 0 || (!rule.find_warmup && timing.warmup == usual)) continue;
      const std::string counts = std::to_string(timing.warmup) + " of " + std::to_string(timing.given);
      if (named++ == 0) same = counts;
      alike += counts == same;
      used += (used.empty() ? "" : ", ") + member.run->name + " " + counts;
      if (timing.asked == timing.warmup) continue;
      more += !few.empty();
      if (few.empty())
        few = "run '" + member.run->name + "' has only " + std::to_string(timing.given) + " timed points: warm-up of " +
              std::to_string(timing.asked) + " cut to " + std::to_string(timing.warmup);
    }
  }
  if (!few.empty()) warnings.push_back(few + (more > 0 ? "; so it is in " + counted(more, "more run") : ""));
  if (timed > 1 && alike == timed) used = same + " in every run";
  const bool detected = !rule.warmup && !rule.find_warmup && !used.empty();
  return asked +
         (used.empty() ? "" : (detected ? ", or the number of each run; left out: " : " asked; left out: ") + used);
}

/// A note about left-out timings, and a warning if there were any.
std::string removed_note(const std::vector<Condition>& conditions, const TimingRule& rule,
                         std::vector<std::string>& warnings) {
  std::size_t removed = 0, given = 0;
  for (const Condition& condition : conditions) {
    for (const Member& member : condition.members) {
      removed += member.timing.removed;
      given += member.timing.given - member.timing.warmup;
    }
  }
  const std::string counts = std::to_string(removed) + " of " + std::to_string(given);
  if (removed > 0) warnings.push_back(counts + " timings left out as outliers");
  return (rule.outliers == Outliers::above_p99 ? "p99: " : "mad: ") + counts + " timings left out";
}

void drop_absent(metric::Table& table, std::string_view name) {
  std::erase_if(table.columns, [&](const metric::Column& column) {
    if (column.name != name) return false;
    std::size_t row = 0;
    while (row < column.size() && column.absent(row)) ++row;
    return row == column.size();
  });
}

}  // namespace

Summary summarize(metric::Store store, const SummaryRule& rule) {
  if (store.runs.empty()) throw Error("no runs in the input: nothing to aggregate");
  std::vector<const metric::Run*> runs;
  for (const metric::Run& run : store.runs) runs.push_back(&run);
  for (const std::string& name : rule.columns) require_column(runs, name);
  const std::vector<Condition> conditions = stat::conditions(store, rule.by, rule.timing);
  std::vector<Work> works;
  for (const Condition& condition : conditions) works.emplace_back(condition, rule);
  find_efficiencies(works);
  Summary made;
  metric::Table table;
  metric::Table& of_runs = made.store.tables["runs"];
  RowWriter row(table), run_row(of_runs);
  for (Work& work : works) {
    for (const SummaryColumn& column : kSummaryColumns) column.write(row, work);
    write_columns(row, work.condition, rule.columns);
    for (const Member& member : work.condition.members) {
      for (const RunColumn& column : kRunColumns) column.write(run_row, {work.condition, member});
    }
    made.store.curves[work.condition.name] = std::move(work.curve);
  }
  for (const SummaryColumn& column : kSummaryColumns) {
    if (column.optional) drop_absent(table, column.name);
  }
  made.store.tables["divergence"] = divergence(conditions, made.store.curves);
  if (metric::Table unlike = outliers(conditions); unlike.rows() > 0) made.store.tables["outliers"] = std::move(unlike);
  if (!rule.by.empty()) made.store.attributes["by"] = joined(rule.by, ",");
  if (!rule.columns.empty()) made.store.attributes["columns"] = joined(rule.columns, ",");
  if (rule.timing.outliers != Outliers::keep)
    made.store.attributes["outliers"] = removed_note(conditions, rule.timing, made.warnings);
  if (rule.target) made.store.attributes["target"] = to_text(*rule.target);
  made.store.attributes["seed"] = to_text(static_cast<std::int64_t>(rule.seed));
  made.store.attributes["warmup"] = warmup_note(conditions, rule.timing, made.warnings);
  for (const Condition& condition : conditions) {
    for (const Member& member : condition.members)
      mark_timed(store.runs[static_cast<std::size_t>(member.run - store.runs.data())], member.series);
  }
  made.store.summary = std::move(table);
  name_loss_unit(made.store, loss_unit(conditions));
  made.store.runs = std::move(store.runs);
  return made;
}

}  // namespace zs::stat

// SPDX-License-Identifier: Apache-2.0
#include "summary/source.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/sheet.hpp"
#include "metric/file.hpp"
#include "registry/query.hpp"
#include "stat/summary.hpp"
#include "summary/condition.hpp"

namespace zs::summary {
namespace {

/// Runs of zs-train have ids as names: uses their run_name if all are distinct.
void rename(metric::Store& store) {
  std::map<std::string, std::size_t> count;
  for (const metric::Run& run : store.runs) ++count[run.attribute("run_name")];
  for (metric::Run& run : store.runs) {
    const std::string name = run.attribute("run_name");
    if (!name.empty() && count[name] == 1 && run.name == run.attribute("run_id")) run.name = name;
  }
}

/// The runs of each condition, in the order of the summary.
std::vector<std::vector<const metric::Run*>> members(const metric::Store& store) {
  const metric::Column &names = *store.summary->find("condition"),
                       &conditions = *store.tables.at("runs").find("condition"),
                       &runs = *store.tables.at("runs").find("run");
  std::vector<std::vector<const metric::Run*>> runs_of(names.size());
  for (std::size_t row = 0; row < names.size(); ++row) {
    for (std::size_t k = 0; k < runs.size(); ++k) {
      if (conditions.texts()[k] != names.texts()[row]) continue;
      const auto run = std::ranges::find(store.runs, runs.texts()[k], &metric::Run::name);
      if (run != store.runs.end()) runs_of[row].push_back(&*run);
    }
  }
  return runs_of;
}

}  // namespace

metric::Store read(const std::vector<input::Named>& named, const input::Listener& listener,
                   const std::function<void(const std::string&)>& warn, stat::SummaryRule rule) {
  metric::Store store = input::read(named, listener);
  if (store.summary && named.size() == 1) return store;
  if (store.runs.empty()) throw Error(named.front().name, 0, "holds no run with a metric line");
  metric::Store records;
  records.runs = std::move(store.runs);
  rename(records);
  std::set<std::string> names;
  for (const metric::Run& run : records.runs) {
    if (!names.insert(run.name).second) throw Error("two runs '" + run.name + "': give only one of them");
  }
  for (const std::string& by : std::vector(rule.by)) {
    const auto has = [&](const metric::Run& run) { return !run.attribute(by).empty(); };
    if (!std::ranges::all_of(records.runs, has)) rule.by.clear();
  }
  stat::Summary made = stat::summarize(std::move(records), rule);
  std::ranges::for_each(made.warnings, warn);
  return std::move(made.store);
}

registry::Runs as_runs(const metric::Store& store) {
  const auto runs = members(store);
  std::vector<registry::Fields> fields(runs.size());
  for (std::size_t row = 0; row < runs.size(); ++row) {
    for (const metric::Column& column : store.summary->columns) {
      if (column.absent(row)) continue;
      registry::set(fields[row], column.name, column.text(row));
      if (column.name == "condition") registry::set(fields[row], "run_name", column.text(row));
    }
    if (runs[row].empty()) continue;
    for (const auto& [key, value] : runs[row].front()->attributes) {
      const bool shared =
          std::ranges::all_of(runs[row], [&](const metric::Run* run) { return run->attribute(key) == value; });
      if (shared && registry::value(fields[row], key).empty()) registry::set(fields[row], key, value);
    }
  }
  return registry::assemble(fields);
}

std::vector<metric::Run> chosen(metric::Store store, const Choice& choice) {
  const registry::Runs table = as_runs(store);
  std::vector<registry::Filter> filters;
  for (const std::string& text : choice.filters) filters.push_back(registry::parse_filter(table, text));
  std::vector<std::size_t> rows = registry::select(table, filters, false);
  if (rows.empty()) throw Error("no condition is left: each of " + std::to_string(table.size()) + " fails a --filter");
  if (!choice.sort_by.empty())
    registry::sort_by(table, registry::resolve_column(table, choice.sort_by), choice.descending, rows);
  const auto runs = members(store);
  std::vector<metric::Run> left;
  for (const std::size_t row : rows) {
    for (const metric::Run* run : runs[row])
      left.push_back(std::move(store.runs[static_cast<std::size_t>(run - store.runs.data())]));
  }
  return left;
}

std::string table_of(const std::string& path) {
  const metric::Store store = metric::read(path);
  if (!store.summary) throw Error(path, 0, "holds records and no summary: zs-aggregate makes one of them");
  const registry::Runs runs = as_runs(store);
  Sheet sheet;
  for (const auto& column : runs.columns) sheet.header.push_back(column.name);
  for (std::size_t row = 0; row < runs.size(); ++row) {
    auto& cells = sheet.rows.emplace_back();
    for (const auto& column : runs.columns) cells.push_back(column.text(row));
  }
  return to_tsv(sheet);
}

}  // namespace zs::summary

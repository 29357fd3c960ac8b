// SPDX-License-Identifier: Apache-2.0
#include "summary/choice.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/sheet.hpp"
#include "metric/file.hpp"
#include "registry/query.hpp"

namespace zs::summary {
namespace {

/// The runs of each condition, in the order of the summary.
std::vector<std::vector<const metric::Run*>> members(const metric::Store& store) {
  const metric::Column &names = *store.summary->find("condition"),
                       &conditions = *store.tables.at("runs").find("condition"),
                       &runs = *store.tables.at("runs").find("run");
  std::vector<std::vector<const metric::Run*>> all(names.size());
  for (std::size_t row = 0; row < names.size(); ++row) {
    for (std::size_t k = 0; k < runs.size(); ++k) {
      if (conditions.texts()[k] != names.texts()[row]) continue;
      const auto run = std::find_if(store.runs.begin(), store.runs.end(),
                                    [&](const metric::Run& one) { return one.name == runs.texts()[k]; });
      if (run != store.runs.end()) all[row].push_back(&*run);
    }
  }
  return all;
}

}  // namespace

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
      const bool shared = std::all_of(runs[row].begin(), runs[row].end(),
                                      [&](const metric::Run* run) { return run->attribute(key) == value; });
      if (shared && registry::value(fields[row], key).empty()) registry::set(fields[row], key, value);
    }
  }
  std::vector<registry::Row> rows;
  for (const registry::Fields& one : fields) rows.push_back({0, &one, 0});
  return registry::assemble({}, rows);
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

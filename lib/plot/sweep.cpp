// SPDX-License-Identifier: Apache-2.0
// Results over the parameters of a sweep.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "plot/figures.hpp"
#include "summary/difference.hpp"
#include "summary/result.hpp"

namespace zs::plot {
namespace {

/// Checks that a key the user named is one of the runs' attributes.
void require_attribute(const std::vector<Condition>& conditions, const std::string& key) {
  std::set<std::string> known;
  for (const Condition& condition : conditions) {
    for (const summary::Member& member : condition.members) {
      for (const auto& [name, value] : member.facts) known.insert(name);
    }
  }
  if (known.count(std::string(attribute::primary(key))) == 0)
    throw UsageError("no run has the attribute '" + key + "'" + did_you_mean(key, {known.begin(), known.end()}));
}

std::string title(const std::string& key) { return std::string(attribute::label(key)); }

}  // namespace

Figure sweep_figure(const std::vector<Condition>& conditions, const Options& options) {
  const summary::Result value = summary::result(options.value, conditions);
  std::vector<std::string> keys = summary::parameters(conditions);
  for (const std::string& named : {options.rows, options.columns}) {
    if (!named.empty()) require_attribute(conditions, named);
    std::erase(keys, attribute::primary(named));
  }
  const auto next = [&](const std::string& named) {
    if (!named.empty() || keys.empty()) return named;
    const std::string key = keys.front();
    keys.erase(keys.begin());
    return key;
  };
  const std::string rows = next(options.rows), columns = next(options.columns);
  const Condition* const best = summary::best_of(conditions, value);
  if (!best) throw Error("no condition that did not fail has a " + value.name);

  Panel panel;
  if (columns.empty()) {  // one parameter, or none that is known: a bar for each condition
    panel.x_label = value.label;
    for (const Condition& condition : conditions) {
      Bar bar;
      bar.name = rows.empty() ? condition.name : title(rows) + " " + condition.attribute(rows);
      bar.colour = &condition == best ? Ink(0) : Ink(Ink::Role::grid);
      bar.failed = condition.bad();
      bar.value = value.of(condition);
      bar.label = condition.bad()            ? condition.status
                  : std::isfinite(bar.value) ? value.text(bar.value)
                                             : "no " + value.name;
      if (&condition == best) bar.label += "  best";
      panel.bars.push_back(std::move(bar));
    }
    return {"Sweep: " + value.label, {std::move(panel)}};
  }
  panel.rows = summary::levels(conditions, rows);
  panel.columns = summary::levels(conditions, columns);
  panel.x_label = title(columns), panel.y_label = title(rows);
  std::map<std::pair<std::size_t, std::size_t>, std::vector<const Condition*>> cells;
  const auto index = [](const std::vector<std::string>& all, std::string one) {
    if (one.empty()) one = "-";
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), one) - all.begin());
  };
  bool several = false;
  for (const Condition& condition : conditions) {
    auto& cell =
        cells[{index(panel.rows, condition.attribute(rows)), index(panel.columns, condition.attribute(columns))}];
    cell.push_back(&condition);
    several = several || cell.size() > 1;
  }
  for (const auto& [place, members] : cells) {
    Cell cell;
    cell.row = place.first, cell.column = place.second;
    std::string failed;
    for (const Condition* const condition : members) {
      if (condition->bad())
        failed = condition->status;
      else if (value.better(value.of(*condition), cell.value))
        cell.value = value.of(*condition);
      cell.best = cell.best || condition == best;
    }
    cell.label = std::isfinite(cell.value) ? value.text(cell.value) : failed.empty() ? "-" : failed;
    panel.cells.push_back(std::move(cell));
  }
  panel.key = value.high_is_best ? "higher is better" : "lower is better";
  panel.notes.push_back("best: " + best->name + " (" + value.text(value.of(*best)) + ")");
  if (several) {
    std::string others;
    for (const std::string& key : keys) others += (others.empty() ? "" : ", ") + title(key);
    panel.notes.push_back("each cell: the best over " + (others.empty() ? "its conditions" : others));
  }
  return {"Sweep: " + value.label, {std::move(panel)}};
}

}  // namespace zs::plot

// SPDX-License-Identifier: Apache-2.0
// Results over the parameters of a sweep.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "figure/axis.hpp"
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

/// Values in equal ratios read better on a logarithmic axis.
bool geometric(const std::vector<double>& values) {
  if (values.size() < 3 || values.front() <= 0) return false;
  double least = HUGE_VAL, most = 0, closest = HUGE_VAL, furthest = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double ratio = std::log(values[i] / values[i - 1]), step = values[i] - values[i - 1];
    least = std::min(least, ratio), most = std::max(most, ratio);
    closest = std::min(closest, step), furthest = std::max(furthest, step);
  }
  return most / least < furthest / closest;
}

/// The result over the numeric values of one parameter; nothing if they are not numeric, or fewer than two.
std::optional<Panel> over_one(const std::vector<Condition>& conditions, const summary::Result& value,
                              const std::string& key, const Condition* best) {
  std::map<double, std::vector<double>> points;
  std::string failed;
  for (const Condition& condition : conditions) {
    const auto level = parse_real(condition.attribute(key));
    if (!level || !std::isfinite(*level)) return {};
    const double result = value.of(condition);
    auto& at = points[*level];
    if (!condition.bad() && std::isfinite(result))
      at.push_back(result);
    else
      failed += (failed.empty() ? "" : ", ") + to_text(*level) + " " + (condition.bad() ? condition.status : "");
  }
  if (points.size() < 2) return {};
  Panel panel;
  Series mean, each, marked;
  mean.name = value.label, mean.colour = Ink(0);
  bool several = false;
  for (const auto& [level, results] : points) {
    panel.x_ticks.push_back(level);
    mean.x.push_back(level);
    mean.y.push_back(results.empty() ? kNone : stat::mean(results));
    mean.low.push_back(results.empty() ? kNone : *std::ranges::min_element(results));
    mean.high.push_back(results.empty() ? kNone : *std::ranges::max_element(results));
    several = several || results.size() > 1;
  }
  if (!several) mean.low.clear(), mean.high.clear();
  panel.log_x = geometric(panel.x_ticks);
  panel.x_label = title(key), panel.y_label = value.label;
  const double at = parse_real(best->attribute(key)).value_or(kNone);
  marked.name = "best: " + title(key) + " " + figure::labels(std::vector<double>{at}).front() + ", " +
                value.text(value.of(*best));
  marked.colour = Ink(1), marked.x = {at}, marked.y = {value.of(*best)};
  panel.series = {std::move(mean), std::move(marked)};
  if (several)
    panel.notes.emplace_back("line: the mean over conditions of one value; band: the smallest to the largest");
  if (!failed.empty()) panel.notes.push_back("without a result: " + failed);
  return panel;
}

/// A bar for each condition, by one parameter, or by none that is known ("").
Panel bars_of(const std::vector<Condition>& conditions, const summary::Result& value, const std::string& rows,
              const Condition* best) {
  Panel panel;
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
  return panel;
}

/// The best of the conditions that share a cell.
Cell cell_of(const std::vector<const Condition*>& members, const summary::Result& value, const Condition* best) {
  Cell cell;
  std::string failed;
  for (const Condition* const condition : members) {
    if (condition->bad())
      failed = condition->status;
    else if (value.better(value.of(*condition), cell.value))
      cell.value = value.of(*condition);
    cell.best = cell.best || condition == best;
  }
  cell.label = std::isfinite(cell.value) ? value.text(cell.value) : failed.empty() ? "-" : failed;
  return cell;
}

/// A cell for each pair of values of two parameters; `others`: the parameters that the cells do not show.
Panel grid_of(const std::vector<Condition>& conditions, const summary::Result& value, const std::string& rows,
              const std::string& columns, const std::vector<std::string>& others, const Condition* best) {
  Panel panel;
  panel.rows = summary::levels(conditions, rows);
  panel.columns = summary::levels(conditions, columns);
  panel.x_label = title(columns), panel.y_label = title(rows);
  const auto index = [](const std::vector<std::string>& levels, std::string one) {
    if (one.empty()) one = "-";
    return static_cast<std::size_t>(std::ranges::find(levels, one) - levels.begin());
  };
  std::map<std::pair<std::size_t, std::size_t>, std::vector<const Condition*>> cells;
  for (const Condition& condition : conditions)
    cells[{index(panel.rows, condition.attribute(rows)), index(panel.columns, condition.attribute(columns))}].push_back(
        &condition);
  for (const auto& [place, members] : cells) {
    Cell cell = cell_of(members, value, best);
    cell.row = place.first, cell.column = place.second;
    panel.cells.push_back(std::move(cell));
  }
  for (auto* const levels : {&panel.rows, &panel.columns}) *levels = figure::labels(*levels);
  panel.key = value.column.row().better == stat::Better::high ? "higher is better" : "lower is better";
  panel.notes.push_back("best: " + best->name + " (" + value.text(value.of(*best)) + ")");
  if (std::ranges::any_of(cells, [](const auto& cell) { return cell.second.size() > 1; })) {
    const std::string names = joined(others, ", ", title);
    panel.notes.push_back("each cell: the best over " + (names.empty() ? "its conditions" : names));
  }
  return panel;
}

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
  if (!best) throw NoData("no condition that did not fail has a " + value.name);

  std::optional<Panel> panel;
  if (columns.empty() && !rows.empty()) panel = over_one(conditions, value, rows, best);
  if (!panel)
    panel = columns.empty() ? bars_of(conditions, value, rows, best)
                            : grid_of(conditions, value, rows, columns, keys, best);
  return {"Sweep: " + value.label, {*std::move(panel)}};
}

}  // namespace zs::plot

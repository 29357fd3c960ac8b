// SPDX-License-Identifier: Apache-2.0
#include "report/grid_maker.hpp"

#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "figure/figure.hpp"
#include "stat/sample.hpp"

namespace zs::report {
namespace {

/// The mean over the runs that have the number; nan without one.
double mean_fact(const Condition& condition, const std::string& name) {
  stat::Sample all;
  for (const summary::Member& member : condition.members) {
    const auto found = member.facts.find(name);
    if (const auto value = found == member.facts.end() ? std::nullopt : parse_real(found->second))
      all.push_back(*value);
  }
  return all.empty() ? figure::kNone : stat::mean(all);
}

std::string titled(std::string_view title, const summary::Unit& unit) {
  return std::string(title) + (unit.name.empty() ? "" : " (" + unit.name + ")");
}

}  // namespace

Cell nothing() { return {Text("-")}; }
Cell status_cell(const Condition& condition) {
  return {condition.bad() ? Text(bad(condition.status)) : Text(condition.status)};
}
Cell name_cell(const Condition& condition, bool with_status) {
  Text text = code(condition.name);
  if (condition.bad() && with_status) text += Text(" ") + Text(bad(condition.status));
  return {std::move(text), static_cast<double>(condition.place)};
}

std::vector<double> values(const Findings& found, Condition::Column column) {
  std::vector<double> all;
  for (const Condition& condition : found.conditions) all.push_back(condition[column].value_or(figure::kNone));
  return all;
}

bool has(const Findings& found, Condition::Column column) {
  return std::ranges::any_of(found.conditions, [&](const Condition& one) { return one[column].has_value(); });
}

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::fmax(result, std::isfinite(value) ? value : 0);
  return result;
}

GridMaker::GridMaker(const Findings& found, Tracer& tracer) : found_(found), tracer_(tracer) {
  grid_.header = {"condition"};
  grid_.numeric = {false};
  for (const Condition& condition : found.conditions) grid_.rows.push_back({name_cell(condition)});
}

void GridMaker::number(Condition::Column which, const summary::Unit& unit) {
  numbers(titled(which.row().report, unit), {which}, unit);
}

void GridMaker::interval(const std::string& title, Condition::Column low, Condition::Column high,
                         const summary::Unit& unit) {
  numbers(titled(title, unit), {low, high}, unit);
}

void GridMaker::mean(const std::string& title, const std::string& name, summary::Unit (*unit_of)(double)) {
  std::vector<double> all;
  for (const Condition& condition : found_.conditions) all.push_back(mean_fact(condition, name));
  const summary::Unit unit = unit_of(largest(all));
  for (double& value : all) value /= unit.factor;
  if (std::all_of(all.begin(), all.end(), [](double value) { return std::isnan(value); })) return;
  const std::vector<std::string> texts = summary::column(all, 4);
  column(title + " (" + unit.name + ")", [&](std::size_t i) {
    return std::isnan(all[i]) ? nothing() : Cell{Text(texts[i]), all[i]};
  });
}

void GridMaker::mark_least(const std::string& title) {
  if (grid_.header.back() != title) return;
  double least = HUGE_VAL, most = -HUGE_VAL;
  const auto key = [&](std::size_t i) { return found_.conditions[i].bad() ? figure::kNone : grid_.rows[i].back().key; };
  for (std::size_t i = 0; i < grid_.rows.size(); ++i) least = std::fmin(least, key(i)), most = std::fmax(most, key(i));
  if (!(least < most)) return;
  marked_ = true;
  for (std::size_t i = 0; i < grid_.rows.size(); ++i) {
    if (key(i) != least) continue;
    for (Span& span : grid_.rows[i].back().text.spans) span.look = Span::Look::strong;
  }
}

void GridMaker::numbers(const std::string& title, const std::vector<Condition::Column>& columns,
                        const summary::Unit& unit) {
  if (!has(found_, columns[0])) return;
  std::vector<double> all;
  for (const Condition::Column one : columns) {
    for (const double value : values(found_, one)) all.push_back(value / unit.factor);
  }
  const std::vector<std::string> texts = summary::column(all, columns[0].row().digits);
  column(title, [&](std::size_t i) {
    const Condition& condition = found_.conditions[i];
    Cell cell;
    for (std::size_t part = 0; part < columns.size(); ++part) {
      const auto value = condition[columns[part]];
      if (!value) return nothing();
      if (part == 0) cell.key = *value;
      cell.text += say("{}{}", part ? " to " : "",
                       tracer_.number(condition, columns[part], texts[part * found_.conditions.size() + i]));
    }
    return cell;
  });
}

}  // namespace zs::report

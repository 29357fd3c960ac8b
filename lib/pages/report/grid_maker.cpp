// SPDX-License-Identifier: Apache-2.0
#include "report/grid_maker.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/number.hpp"
#include "figure/figure.hpp"
#include "report/words.hpp"
#include "summary/condition.hpp"

namespace zs::report {
namespace {

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
  std::vector<double> column_values;
  for (const Condition& condition : found.conditions)
    column_values.push_back(condition[column].value_or(figure::kNone));
  return column_values;
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
  std::vector<double> means;
  for (const Condition& condition : found_.conditions) means.push_back(summary::mean_fact(condition, {name.c_str()}));
  const summary::Unit unit = unit_of(largest(means));
  for (double& value : means) value /= unit.factor;
  if (std::ranges::all_of(means, [](double value) { return std::isnan(value); })) return;
  const std::vector<std::string> texts = summary::column(means, 4);
  column(title + " (" + unit.name + ")", [&](std::size_t i) {
    return std::isnan(means[i]) ? nothing() : Cell{Text(texts[i]), means[i]};
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
  std::vector<double> scaled;
  for (const Condition::Column one : columns) {
    for (const double value : values(found_, one)) scaled.push_back(value / unit.factor);
  }
  const std::vector<std::string> texts = summary::column(scaled, columns[0].row().digits);
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

Cell fact_cell(const Condition& condition, const std::string& name) {
  const auto value = parse_real(condition.attribute(name));
  if (!value) return Cell{Text("-")};
  if (name.find("accuracy") != std::string::npos && *value >= 0 && *value <= 1)
    return {Text(to_rounded_text(100 * *value, 5) + " %"), *value};
  return {Text(to_rounded_text(*value, 5)), *value};
}

std::optional<Grid> fact_grid(const Findings& found, std::string_view beginning, const std::string& title) {
  std::set<std::pair<std::int64_t, std::string>> names;  // numbers by size, then words by letter
  for (const Condition& condition : found.conditions) {
    for (const summary::Member& member : condition.members) {
      for (const auto& [name, value] : member.facts) {
        if (name.starts_with(beginning))
          names.emplace(parse_int(name.substr(beginning.size())).value_or(INT64_MAX), name);
      }
    }
  }
  if (names.empty()) return {};
  Grid grid;
  grid.header = {title};
  grid.numeric = {false};
  for (const Condition& condition : found.conditions) {
    grid.header.push_back(condition.name);
    grid.numeric.push_back(true);
  }
  for (const auto& [number, name] : names) {
    grid.rows.push_back({Cell{Text(name.substr(beginning.size()))}});
    for (const Condition& condition : found.conditions) grid.rows.back().push_back(fact_cell(condition, name));
  }
  return grid;
}

std::optional<Grid> outlier_grid(const metric::Store& store) {
  const auto entry = store.tables.find("outliers");
  if (entry == store.tables.end()) return {};
  const metric::Table& table = entry->second;
  Grid grid{"Runs that stand out among like ones",
            {"run", "what", "value", "median of like runs", "usual from", "to", "change", "like it"},
            {false, false, true, true, true, true, true, true},
            {}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto words = [&](const char* name) {
      const std::string text = table.text(name, row);
      return text.empty() ? "-" : text;
    };
    const bool bytes = words("unit") == "bytes";
    const auto number = [&](const char* name) {
      const auto value = parse_real(words(name));
      return value ? Cell{Text(to_rounded_text(bytes ? *value / 1e9 : *value, 5)), *value} : Cell{Text("-")};
    };
    const double change = parse_real(words("change")).value_or(figure::kNone);
    grid.rows.push_back({{Text(code(words("run")))},
                         {Text(words("quantity") + " (" + (bytes ? "GB" : words("unit")) + ")")},
                         number("value"),
                         number("median"),
                         number("low"),
                         number("high"),
                         {Text((change > 0 ? "+" : "-") + percent(std::abs(change))), change},
                         {Text(words("alike")), parse_real(words("alike")).value_or(figure::kNone)}});
  }
  return grid;
}

}  // namespace zs::report

// SPDX-License-Identifier: Apache-2.0
#include "report/grids.hpp"

#include <cmath>
#include <set>

#include "base/number.hpp"
#include "figure/figure.hpp"
#include "report/words.hpp"

namespace zs::report {

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
      const metric::Column* const column = table.find(name);
      return column && !column->absent(row) ? column->text(row) : std::string("-");
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

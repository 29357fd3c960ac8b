// SPDX-License-Identifier: Apache-2.0
#include "registry/runs.hpp"

#include <algorithm>
#include <unordered_map>

#include "attribute/table.hpp"
#include "config/known.hpp"

namespace zs::registry {
namespace {

/// The columns that name a run: always present, so that readers of runs.csv can rely on them.
const std::vector<const attribute::Attribute*>& leading() {
  static const auto rows = attribute::filtered([](const attribute::Attribute& row) { return row.leads; });
  return rows;
}

/// The position of a column: names of a run first, then settings in the order of their table, then the rest by name.
std::size_t rank(const std::string& name) {
  const auto& first = leading();
  const auto lead = std::find_if(first.begin(), first.end(), [&](const auto* row) { return row->name == name; });
  if (lead != first.end()) return static_cast<std::size_t>(lead - first.begin());
  const config::Known* const row = config::known(name);
  return first.size() + (row ? static_cast<std::size_t>(row - config::known().data()) : config::known().size());
}

}  // namespace

const Column* Runs::find(std::string_view name) const {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

const std::string& Runs::text(std::size_t row, std::string_view column) const {
  static const std::string kAbsent;
  const Column* const found = find(column);
  return found ? found->text(row) : kAbsent;
}

Fields Runs::fields(std::size_t row) const {
  Fields fields;
  for (const Column& column : columns) {
    if (column.codes[row] != 0) fields.emplace_back(column.name, column.text(row));
  }
  return fields;
}

Runs assemble(const std::vector<Fields>& rows) {
  Runs runs;
  std::unordered_map<std::string, std::size_t> places;
  std::vector<std::unordered_map<std::string, std::uint32_t>> codes;
  const auto column_of = [&](const std::string& name) {
    const auto [place, is_new] = places.try_emplace(name, runs.columns.size());
    if (is_new) {
      runs.columns.push_back({name, {""}, std::vector<std::uint32_t>(rows.size())});
      codes.push_back({{"", 0}});
    }
    return place->second;
  };
  for (const attribute::Attribute* const row : leading()) column_of(std::string(row->name));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const auto& [key, value] : rows[r]) {
      const std::size_t at = column_of(key);
      Column& column = runs.columns[at];
      const auto [code, unseen] = codes[at].try_emplace(value, static_cast<std::uint32_t>(column.values.size()));
      if (unseen) column.values.push_back(value);
      column.codes[r] = code->second;
    }
  }
  std::erase_if(runs.columns, [](const Column& column) {
    return column.values.size() == 1 && rank(column.name) >= leading().size();
  });
  std::sort(runs.columns.begin(), runs.columns.end(), [](const Column& a, const Column& b) {
    const std::size_t x = rank(a.name), y = rank(b.name);
    return x != y ? x < y : a.name < b.name;
  });
  return runs;
}

}  // namespace zs::registry

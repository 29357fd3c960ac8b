// SPDX-License-Identifier: Apache-2.0
#include "registry/runs.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "attribute/table.hpp"
#include "config/known.hpp"

namespace zs::registry {
namespace {

constexpr std::uint32_t kUnset = std::numeric_limits<std::uint32_t>::max();

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

/// Drops values that no row has, and numbers the others in order of appearance.
void compact(Column& column) {
  std::vector<std::uint32_t> places(column.values.size(), kUnset);
  places[0] = 0;
  std::vector<std::string> values = {""};
  for (std::uint32_t& code : column.codes) {
    if (places[code] == kUnset) {
      places[code] = static_cast<std::uint32_t>(values.size());
      values.push_back(std::move(column.values[code]));
    }
    code = places[code];
  }
  column.values = std::move(values);
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

Runs assemble(const Runs& earlier, const std::vector<Row>& rows) {
  Runs runs;
  runs.times.reserve(rows.size());
  for (const Row& row : rows) runs.times.push_back(row.time);
  std::unordered_map<std::string, std::size_t> places;
  for (const attribute::Attribute* const row : leading()) {
    const std::string name(row->name);
    if (earlier.find(name)) continue;
    places[name] = runs.columns.size();
    runs.columns.push_back({name, {""}, std::vector<std::uint32_t>(rows.size())});
  }
  for (const Column& old : earlier.columns) {
    places[old.name] = runs.columns.size();
    Column& column = runs.columns.emplace_back(Column{old.name, old.values, {}});
    column.codes.reserve(rows.size());
    for (const Row& row : rows) column.codes.push_back(row.fresh ? 0 : old.codes[row.earlier]);
  }
  // Values are looked up only in the columns that fresh rows touch.
  std::unordered_map<std::size_t, std::unordered_map<std::string, std::uint32_t>> codes;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!rows[r].fresh) continue;
    for (const auto& [key, value] : *rows[r].fresh) {
      const auto [place, is_new] = places.try_emplace(key, runs.columns.size());
      if (is_new) runs.columns.push_back({key, {""}, std::vector<std::uint32_t>(rows.size())});
      Column& column = runs.columns[place->second];
      auto& known = codes[place->second];
      if (known.empty()) {
        for (std::uint32_t code = 0; code < column.values.size(); ++code) known.emplace(column.values[code], code);
      }
      const auto [code, unseen] = known.try_emplace(value, static_cast<std::uint32_t>(column.values.size()));
      if (unseen) column.values.push_back(value);
      column.codes[r] = code->second;
    }
  }
  for (Column& column : runs.columns) compact(column);
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

// SPDX-License-Identifier: Apache-2.0
#include "metric/table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "attribute/table.hpp"
#include "base/number.hpp"
#include "metric/unit.hpp"

namespace zs::metric {
namespace {

constexpr std::uint64_t kAbsentBits = 0x7FF80000000007A2;  // quiet NaN, payload 1954
constexpr std::array<std::string_view, 3> kTypeNames = {"int", "real", "text"};

/// The standard columns: the attributes that have a value for every step.
const std::map<std::string_view, Standard>& standards() {
  static const std::map<std::string_view, Standard> columns = [] {
    std::map<std::string_view, Standard> made;
    for (const attribute::Attribute& row : attribute::table()) {
      if (row.recorded) made.emplace(row.name, Standard{row.name, row.unit, row.type});
    }
    return made;
  }();
  return columns;
}

}  // namespace

std::string_view name(Type type) { return kTypeNames[static_cast<std::size_t>(type)]; }

std::optional<Type> type_named(std::string_view name) {
  const auto found = std::ranges::find(kTypeNames, name);
  if (found == kTypeNames.end()) return {};
  return static_cast<Type>(found - kTypeNames.begin());
}

double absent_real() { return std::bit_cast<double>(kAbsentBits); }
bool is_absent(double value) { return std::bit_cast<std::uint64_t>(value) == kAbsentBits; }

Column::Column(std::string name, std::string unit, Type type) : name(std::move(name)), unit(std::move(unit)) {
  if (type == Type::real) values_.emplace<1>();
  if (type == Type::text) values_.emplace<2>();
}

std::size_t Column::size() const {
  return std::visit([](const auto& values) { return values.size(); }, values_);
}

bool Column::absent(std::size_t row) const {
  switch (type()) {
    case Type::integer:
      return is_absent(integers()[row]);
    case Type::real:
      return is_absent(reals()[row]);
    case Type::text:
      return texts()[row].empty();
  }
  return true;
}

double Column::real(std::size_t row) const {
  if (type() == Type::real) return reals()[row];
  const std::int64_t value = integers()[row];
  return is_absent(value) ? absent_real() : static_cast<double>(value);
}

std::string Column::text(std::size_t row) const {
  if (absent(row)) return "";
  switch (type()) {
    case Type::integer:
      return to_text(integers()[row]);
    case Type::real:
      return to_text(reals()[row]);
    case Type::text:
      return texts()[row];
  }
  return "";
}

void Column::pad(std::size_t rows) {
  if (rows <= size()) return;
  switch (type()) {
    case Type::integer:
      integers().resize(rows, kAbsentInteger);
      break;
    case Type::real:
      reals().resize(rows, absent_real());
      break;
    case Type::text:
      texts().resize(rows);
      break;
  }
}

void Column::truncate(std::size_t rows) {
  if (rows < size()) std::visit([&](auto& values) { values.resize(rows); }, values_);
}

bool Column::append(std::string_view cell) {
  if (cell.empty()) {
    pad(size() + 1);
    return true;
  }
  switch (type()) {
    case Type::integer: {
      const auto value = parse_int(cell);
      if (value) integers().push_back(*value);
      return value.has_value();
    }
    case Type::real: {
      const auto value = parse_real(cell);
      if (value) reals().push_back(*value);
      return value.has_value();
    }
    case Type::text:
      texts().emplace_back(cell);
      return true;
  }
  return false;
}

const Column* Table::find(std::string_view name) const {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

Column* Table::find(std::string_view name) { return const_cast<Column*>(std::as_const(*this).find(name)); }

Column& Table::column(std::string_view name, Type type, std::string_view unit) {
  if (Column* const found = find(name)) return *found;
  const std::size_t length = rows();
  const Standard* const known = standard(name);
  Column& made = known ? columns.emplace_back(std::string(name), std::string(known->unit), known->type)
                       : columns.emplace_back(std::string(name), std::string(unit), type);
  made.pad(length);
  return made;
}

void Table::even_out() {
  std::size_t longest = 0;
  for (const Column& column : columns) longest = std::max(longest, column.size());
  for (Column& column : columns) column.pad(longest);
}

Table canonical(Table table) {
  std::vector<std::pair<std::size_t, std::size_t>> order;  // row of the first value, place
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    std::size_t row = 0;
    while (row < column.size() && column.absent(row)) ++row;
    if (row < column.size()) order.emplace_back(row, c);
  }
  std::ranges::sort(order);
  Table kept;
  for (const auto& [row, c] : order) kept.columns.push_back(std::move(table.columns[c]));
  set_loss_unit(kept.columns);
  return kept;
}

Column inferred(Column texts) {
  for (const Type type : {Type::integer, Type::real}) {
    Column column(texts.name, texts.unit, type);
    const auto& cells = texts.texts();
    if (std::ranges::all_of(cells, [&](const std::string& cell) { return column.append(cell); })) return column;
  }
  return texts;
}

std::string Table::text(std::string_view column, std::size_t row) const {
  const Column* const found = find(column);
  return found && !found->absent(row) ? found->text(row) : "";
}

const Standard* standard(std::string_view name) {
  const auto found = standards().find(name);
  return found == standards().end() ? nullptr : &found->second;
}

std::string Run::attribute(const std::string& key) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? "" : found->second;
}

}  // namespace zs::metric

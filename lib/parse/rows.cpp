// SPDX-License-Identifier: Apache-2.0
#include "parse/rows.hpp"

#include <stdexcept>

#include "metric/file.hpp"

namespace zs::parse {

void TsvRows::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  writer_.columns(columns);
  writer_.row(cells);
}

void TsvRows::finish(const std::map<std::string, std::string>& attributes) {
  for (const auto& [key, value] : attributes) writer_.attribute(key, value);
  writer_.flush();
}

void RunRows::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  metric::Table& table = run_.records;
  for (std::size_t i = table.columns.size(); i < columns.size(); ++i) table.column(columns[i].name, columns[i].type);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (table.columns[i].append(cells[i])) continue;
    throw std::logic_error("parse: column " + columns[i].name + " got '" + std::string(cells[i]) + "'");
  }
}

void JsonlRows::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  table_.row(columns, cells);
  if (run_.records.rows() >= 4096) write();
}

void JsonlRows::write() {
  out_.write(metric::to_jsonl({run_}));
  for (metric::Column& column : run_.records.columns) column = metric::Column(column.name, column.unit, column.type());
}

}  // namespace zs::parse

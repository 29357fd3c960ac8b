// SPDX-License-Identifier: Apache-2.0
#include "metric/writer.hpp"

#include <algorithm>
#include <stdexcept>

#include "metric/file.hpp"
#include "metric/jsonl_writer.hpp"
#include "metric/unit.hpp"

namespace zs::metric {

void TextWriter::begin(const std::string& run, const Facts& attributes) {
  writer_.run(run);
  for (const auto& [key, value] : attributes) writer_.attribute(key, value);
  begun_ = attributes;
}

void TextWriter::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  writer_.columns(columns);
  writer_.row(cells);
}

void TextWriter::finish(const Facts& attributes) {
  for (const auto& [key, value] : attributes) {
    const auto before = begun_.find(key);
    if (before == begun_.end() || before->second != value) writer_.attribute(key, value);
  }
  writer_.flush();
}

void MemoryWriter::begin(const std::string& run, const Facts& attributes) {
  run_.name = run;
  run_.attributes = attributes;
}

void MemoryWriter::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  Table& table = run_.records;
  if (table.columns.size() < columns.size()) {
    for (std::size_t i = table.columns.size(); i < columns.size(); ++i)
      table.column(columns[i].name, columns[i].type, columns[i].unit);
    set_loss_unit(table.columns);
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (table.columns[i].append(cells[i])) continue;
    throw std::logic_error("column " + columns[i].name + " got '" + std::string(cells[i]) + "'");
  }
}

void JsonlWriter::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  table_.row(columns, cells);
  if (run_.records.rows() >= 4096) write();
}

void JsonlWriter::write() {
  out_.write(to_jsonl({run_}));
  for (Column& column : run_.records.columns) column.truncate(0);
}

void FileWriter::flush(bool now) {
  if (!due(now)) return;
  const auto begin = std::chrono::steady_clock::now();
  write_file(path_, to_h5({{run_}, {}, {}, {}, {}}));
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> took = Clock::now() - begin, wait(std::max(1.0, took.count() / share_));
  next_ = begin + std::chrono::duration_cast<Clock::duration>(wait);
}

void FileWriter::finish(const Facts& attributes) {
  table_.finish(attributes);
  flush(true);
}

void write_row(const Table& records, std::size_t row, Writer& writer) {
  std::vector<ColumnInfo> columns;
  std::vector<std::string> texts;
  for (const Column& column : records.columns) {
    columns.push_back({column.name, column.type(), column.unit});
    texts.push_back(column.text(row));
  }
  writer.row(columns, {texts.begin(), texts.end()});
}

}  // namespace zs::metric

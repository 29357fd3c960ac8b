// SPDX-License-Identifier: Apache-2.0
#include "parse/rows.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "metric/escape.hpp"
#include "metric/file.hpp"

namespace zs::parse {
namespace {

constexpr std::size_t kHeld = 2 << 20;
constexpr std::size_t kWritten = 1 << 18;

}  // namespace

TsvRows::TsvRows(const std::string& run, Output& out, bool first, bool eager)
    : run_(metric::escaped_name(run)), row_start_(metric::escaped(run)), out_(out), first_(first), eager_(eager) {}

/// Room for `size` more bytes behind what is held.
char* TsvRows::room(std::size_t size) {
  if (held_size_ + size > held_capacity_) {
    held_capacity_ = std::max(held_capacity_ * 2, held_size_ + size + kWritten);
    auto larger = std::make_unique_for_overwrite<char[]>(held_capacity_);
    if (held_size_ > 0) std::memcpy(larger.get(), held_.get(), held_size_);
    held_ = std::move(larger);
  }
  return held_.get() + held_size_;
}

void TsvRows::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  if (columns.size() > columns_.size()) {
    if (columns_written_) write_held();
    columns_ = columns;
    widths_.push_back({held_size_, columns_.size()});
    if (columns_written_) {
      write_magic();
      write_columns();
    }
  }
  std::string text = row_start_;
  for (const std::string_view cell : cells) text += '\t' + metric::escaped(cell);
  text += '\n';
  std::memcpy(room(text.size()), text.data(), text.size());
  held_size_ += text.size();
  end_row();
}

void TsvRows::number_row(const std::vector<ColumnInfo>&, const std::vector<std::string_view>& cells) {
  char* to = room(row_start_.size() + cells.size() * (kNumber + 1) + kNumber + 1);
  std::memcpy(to, row_start_.data(), row_start_.size());
  to += row_start_.size();
  for (const std::string_view cell : cells) {
    *to++ = '\t';
    std::memcpy(to, cell.data(), kNumber);  // more than the cell, but of a size that the compiler knows
    to += cell.size();
  }
  *to++ = '\n';
  held_size_ = static_cast<std::size_t>(to - held_.get());
  end_row();
}

void TsvRows::end_row() {
  if (!eager_ && held_size_ < (columns_written_ ? kWritten : kHeld)) return;
  if (!columns_written_) {
    write_magic();
    write_columns();
  }
  write_held();
}

void TsvRows::write_magic() {
  out_.write(first_ ? "#zs-metrics 1\n" : "#zs-metrics 1 continued\n");
  first_ = false;
}

void TsvRows::write_columns() {
  columns_written_ = true;
  if (columns_.empty()) return;
  std::string head;
  for (const ColumnInfo& column : columns_) {
    if (metric::standard(column.name)) continue;
    head += "#: " + metric::escaped_name(column.name) + " " + std::string(metric::name(column.type)) + "\n";
  }
  head += "run";
  for (const ColumnInfo& column : columns_) head += "\t" + metric::escaped(column.name);
  out_.write(head + "\n");
}

void TsvRows::write_attributes(const std::map<std::string, std::string>& attributes) {
  for (const auto& [key, value] : attributes) {
    out_.write("#@ " + run_ + " " + metric::escaped_name(key) + "=" + metric::escaped(value) + "\n");
  }
  if (attributes.empty() && columns_.empty()) out_.write("#@ " + run_ + "\n");
}

void TsvRows::write_held() {
  const std::string_view held(held_.get(), held_size_);
  if (widths_.empty() || widths_.back().cells == widths_.front().cells) {
    out_.write(held);
  } else {
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      const std::size_t end = i + 1 < widths_.size() ? widths_[i + 1].offset : held.size();
      const std::string tabs(columns_.size() - widths_[i].cells, '\t');
      for (std::size_t at = widths_[i].offset; at < end;) {
        const std::size_t newline = held.find('\n', at);
        out_.write(held.substr(at, newline - at));
        out_.write(tabs + "\n");
        at = newline + 1;
      }
    }
  }
  held_size_ = 0;
  widths_.assign(1, {0, columns_.size()});
}

void TsvRows::finish(const std::map<std::string, std::string>& attributes) {
  if (!columns_written_) {
    write_magic();
    write_attributes(attributes);
    write_columns();
    write_held();
  } else {
    write_held();
    write_attributes(attributes);
  }
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

// SPDX-License-Identifier: Apache-2.0
#include "parse/rows.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "metric/escape.hpp"

namespace zs::parse {
namespace {

constexpr std::size_t kHeld = 2 << 20;
constexpr std::size_t kWritten = 1 << 16;

}  // namespace

TsvRows::TsvRows(const std::string& run, Output& out, bool first, bool eager)
    : run_(metric::escaped_name(run)), row_start_(metric::escaped(run)), out_(out), first_(first), eager_(eager) {}

void TsvRows::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  if (columns.size() > columns_.size()) {
    if (columns_written_) write_held();
    columns_ = columns;
    has_text_ = std::any_of(columns_.begin(), columns_.end(), [](const ColumnInfo& c) { return c.type == metric::Type::text; });
    widths_.push_back({held_.size(), columns_.size()});
    if (columns_written_) {
      write_magic();
      write_columns();
    }
  }
  if (has_text_) {
    held_ += row_start_;
    for (const std::string_view cell : cells) held_ += '\t' + metric::escaped(cell);
    held_ += '\n';
  } else {  // the same, quickly
    std::size_t size = row_start_.size() + cells.size() + 1;
    for (const std::string_view cell : cells) size += cell.size();
    const std::size_t before = held_.size();
    held_.resize(before + size);
    char* to = held_.data() + before;
    const auto add = [&to](std::string_view text) {
      std::memcpy(to, text.data(), text.size());
      to += text.size();
    };
    add(row_start_);
    for (const std::string_view cell : cells) {
      *to++ = '\t';
      if (!cell.empty()) add(cell);
    }
    *to = '\n';
  }
  if (!eager_ && held_.size() < (columns_written_ ? kWritten : kHeld)) return;
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
  if (widths_.empty() || widths_.back().cells == widths_.front().cells) {
    out_.write(held_);
  } else {
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      const std::size_t end = i + 1 < widths_.size() ? widths_[i + 1].offset : held_.size();
      const std::string tabs(columns_.size() - widths_[i].cells, '\t');
      for (std::size_t at = widths_[i].offset; at < end;) {
        const std::size_t newline = held_.find('\n', at);
        out_.write(std::string_view(held_).substr(at, newline - at));
        out_.write(tabs + "\n");
        at = newline + 1;
      }
    }
  }
  held_.clear();
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

}  // namespace zs::parse

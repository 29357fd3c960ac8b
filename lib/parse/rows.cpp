// SPDX-License-Identifier: Apache-2.0
#include "parse/rows.hpp"

#include "base/error.hpp"

namespace zs::parse {
namespace {

constexpr std::size_t kHeld = 16 << 20;

/// A value of a "#@" line stays on its line.
std::string one_line(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  return clean;
}

}  // namespace

void TsvRows::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  if (columns.size() > columns_.size()) {
    if (head_written_) write_held();
    columns_ = columns;
    widths_.push_back({held_.size(), columns_.size()});
    if (head_written_) write_head({});
  }
  held_ += run_;
  for (const std::string_view cell : cells) {
    held_ += '\t';
    held_ += cell;
  }
  held_ += '\n';
  if (!eager_ && held_.size() < (head_written_ ? 1U << 18 : kHeld)) return;
  if (!head_written_) write_head({});
  write_held();
}

void TsvRows::write_head(const std::map<std::string, std::string>& attributes) {
  std::string head;
  if (!head_written_) head += "#zs-metrics 1\n";
  head_written_ = true;
  for (const auto& [key, value] : attributes) head += "#@ " + run_ + " " + key + "=" + one_line(value) + "\n";
  head += "run";
  for (const ColumnInfo& column : columns_) head += "\t" + column.name;
  out_.write(head + "\n");
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
  if (!head_written_) {
    write_head(attributes);
    write_held();
    return;
  }
  write_held();
  for (const auto& [key, value] : attributes) out_.write("#@ " + run_ + " " + key + "=" + one_line(value) + "\n");
}

void RunRows::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  metric::Table& table = run_.records;
  const std::size_t rows = table.rows();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    metric::Column& column = table.column(columns[i].name, columns[i].type);
    if (!column.append(cells[i])) throw std::logic_error("parse: column " + column.name + " got '" + std::string(cells[i]) + "'");
    if (column.size() != rows + 1) throw std::logic_error("parse: column " + column.name + " is out of step");
  }
}

}  // namespace zs::parse

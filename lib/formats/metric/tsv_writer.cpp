// SPDX-License-Identifier: Apache-2.0
#include "metric/tsv_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/secret.hpp"
#include "metric/escape.hpp"
#include "metric/file.hpp"

namespace zs::metric {
namespace {

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c != '\\' && c != '#' && c >= ' ' && c < '\x7F'; });
}

}  // namespace

void TsvWriter::run(std::string_view name) {
  if (name.empty()) throw Error("a run needs a name");
  if (!runs_.insert(std::string(name)).second) {
    throw Error("a second run named '" + std::string(name) + "': give one another name with --run NAME");
  }
  if (!run_.empty()) flush();
  run_ = escaped_name(name);
  run_field_ = escaped(name);
  columns_.clear();
  widths_.clear();
  has_head_ = has_rows_ = told_ = false;
}

void TsvWriter::attribute(std::string_view key, std::string_view value) {
  if (key.empty()) throw Error("an attribute of run '" + run_field_ + "' has no name");
  attributes_ += "#@ " + run_ + " " + escaped_name(key) + "=" + escaped(withheld(key, value)) + "\n";
}

void TsvWriter::columns(const std::vector<ColumnInfo>& columns) {
  for (std::size_t i = columns_.size(); i < columns.size(); ++i) {
    if (!columns[i].name.empty() && columns[i].name != "run") continue;
    throw Error("a column cannot be named '" + columns[i].name + "': rename it");
  }
  if (columns.size() == columns_.size()) return;
  if (has_head_) print_held();
  columns_ = columns;
  widths_.push_back({held_size_, columns_.size()});
  if (std::exchange(has_head_, false)) print_head();
}

/// Room for `size` more bytes after the held ones.
char* TsvWriter::room(std::size_t size) {
  if (held_size_ + size > held_capacity_) {
    held_capacity_ = std::max(held_capacity_ * 2, held_size_ + size + block_);
    auto larger = std::make_unique_for_overwrite<char[]>(held_capacity_);
    if (held_size_ > 0) std::memcpy(larger.get(), held_.get(), held_size_);
    held_ = std::move(larger);
  }
  return held_.get() + held_size_;
}

void TsvWriter::row(std::span<const std::string_view> cells) {
  std::string text = run_field_;
  for (const std::string_view cell : cells) {
    text += '\t';
    if (is_plain(cell))
      text += cell;
    else
      text += escaped(cell);
  }
  text += '\n';
  std::memcpy(room(text.size()), text.data(), text.size());
  held_size_ += text.size();
  end_row();
}

void TsvWriter::end_row() {
  has_rows_ = true;
  if (held_size_ < (has_head_ ? block_ : hold_)) return;
  if (!has_head_) print_head();
  print_held();
}

/// Attributes so far and the header.
void TsvWriter::print_head() {
  has_head_ = true;
  std::string head = begun_ ? "#zs-metrics 1 continued\n" : "#zs-metrics 1\n";
  begun_ = told_ = true;
  head += attributes_;
  attributes_.clear();
  std::string line = "run";
  for (const ColumnInfo& column : columns_) {
    line += "\t" + escaped(column.name);
    const Standard* const usual = standard(column.name);
    if (usual && usual->type == column.type && usual->unit == column.unit) continue;
    head += "#: " + escaped_name(column.name) + " " + std::string(metric::name(column.type));
    head += (column.unit.empty() ? "" : " ") + escaped_name(column.unit) + "\n";
  }
  sink_(head + line + "\n");
}

void TsvWriter::print_held() {
  const std::string_view held(held_.get(), held_size_);
  if (widths_.empty() || widths_.back().cells == widths_.front().cells) {
    sink_(held);
  } else {
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      const std::size_t end = i + 1 < widths_.size() ? widths_[i + 1].offset : held.size();
      const std::string tabs(columns_.size() - widths_[i].cells, '\t');
      for (std::size_t at = widths_[i].offset; at < end;) {
        const std::size_t newline = held.find('\n', at);
        sink_(held.substr(at, newline - at));
        sink_(tabs + "\n");
        at = newline + 1;
      }
    }
  }
  held_size_ = 0;
  widths_.assign(1, {0, columns_.size()});
}

void TsvWriter::flush() {
  if (has_rows_ && !has_head_) print_head();
  if (held_size_ > 0) print_held();
  std::string rest;
  if (!begun_ || !told_) rest = begun_ ? "#zs-metrics 1 continued\n" : "#zs-metrics 1\n";
  begun_ = true;
  rest += attributes_;
  if (!told_ && attributes_.empty()) rest += "#@ " + run_ + "\n";
  attributes_.clear();
  told_ = true;
  if (!rest.empty()) sink_(rest);
}

std::string to_tsv(const std::vector<Run>& runs) {
  std::string text;
  TsvWriter writer([&](std::string_view block) { text += block; });
  for (const Run& run : runs) {
    const Table records = canonical(run.records);
    writer.run(run.name);
    for (const auto& [key, value] : run.attributes) writer.attribute(key, value);
    std::vector<ColumnInfo> columns;
    for (const Column& column : records.columns) columns.push_back({column.name, column.type(), column.unit});
    writer.columns(columns);
    std::vector<std::string> texts(columns.size());
    std::vector<std::string_view> cells(columns.size());
    for (std::size_t row = 0; row < records.rows(); ++row) {
      for (std::size_t c = 0; c < cells.size(); ++c) cells[c] = texts[c] = records.columns[c].text(row);
      writer.row(cells);
    }
  }
  writer.flush();
  return text;
}

}  // namespace zs::metric

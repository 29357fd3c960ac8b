// SPDX-License-Identifier: Apache-2.0
#include "metric/tsv_writer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "metric/escape.hpp"
#include "metric/file.hpp"

namespace zs::metric {
namespace {

constexpr std::size_t kBlock = 1 << 16;

void append_escaped(std::string& out, std::string_view text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c != '\\' && static_cast<unsigned char>(c) >= ' '; });
  if (plain) {
    out += text;
  } else {
    out += escaped(text);
  }
}

}  // namespace

void TsvWriter::begin() {
  if (!begun_) pending_ += "#zs-metrics 1\n";
  begun_ = true;
}

void TsvWriter::run(std::string_view name) {
  if (name.empty()) throw Error("a run needs a name");
  if (!runs_.insert(std::string(name)).second) {
    throw Error("a second run named '" + std::string(name) + "': give one another name with --run NAME");
  }
  if (!seen_) pending_ += "#@ " + escaped_name(run_) + "\n";
  begin();
  run_ = name;
  run_field_ = escaped(name);
  seen_ = false;
  first_row_ = true;
}

void TsvWriter::attribute(std::string_view key, std::string_view value) {
  if (key.empty()) throw Error("an attribute of run '" + run_ + "' has no name");
  pending_ += "#@ " + escaped_name(run_) + " " + escaped_name(key) + "=" + escaped(value) + "\n";
  seen_ = true;
}

void TsvWriter::declare(const Column& column) {
  if (column.name.empty() || column.name == "run") {
    throw Error("a column cannot be named '" + column.name + "': rename it");
  }
  const auto [place, fresh] = declared_.try_emplace(column.name, column.name, column.unit, column.type());
  if (!fresh && place->second.type() == column.type() && place->second.unit == column.unit) return;
  place->second = Column(column.name, column.unit, column.type());
  redeclared_ = redeclared_ || std::find(header_.begin(), header_.end(), column.name) != header_.end();
}

/// True if the cells stand in the header, in its order.
bool TsvWriter::fits(std::span<const Cell> cells) const {
  auto at = header_.begin();
  return std::all_of(cells.begin(), cells.end(), [&](const Cell& cell) {
    if (cell.text.empty()) return true;
    at = std::find(at, header_.end(), cell.column);
    return at != header_.end() && (++at, true);
  });
}

bool TsvWriter::known(const Cell& cell) const {
  return cell.text.empty() || std::find(header_.begin(), header_.end(), cell.column) != header_.end();
}

void TsvWriter::print_header(std::span<const Cell> cells) {
  if (has_header_) pending_ += "#zs-metrics 1 continued\n";
  has_header_ = true;
  if (first_row_) header_.clear();
  for (const Cell& cell : cells) {
    if (!known(cell)) header_.emplace_back(cell.column);
  }
  std::string line = "run";
  for (const std::string& name : header_) {
    line += "\t" + escaped(name);
    const auto found = declared_.find(name);
    const Standard* const usual = standard(name);
    if (found == declared_.end()) continue;
    const Column& column = found->second;
    if (usual && usual->type == column.type() && usual->unit == column.unit) continue;
    pending_ += "#: " + escaped_name(name) + " " + std::string(metric::name(column.type()));
    pending_ += (column.unit.empty() ? "" : " ") + escaped_name(column.unit) + "\n";
  }
  pending_ += line + "\n";
  redeclared_ = false;
}

void TsvWriter::row(std::span<const Cell> cells) {
  const bool fit = first_row_ ? has_header_ && !redeclared_ && fits(cells)
                              : std::all_of(cells.begin(), cells.end(), [&](const Cell& cell) { return known(cell); });
  if (!fit) print_header(cells);
  first_row_ = false;
  seen_ = true;
  print_row(cells);
  if (pending_.size() < kBlock) return;
  sink_(pending_);
  pending_.clear();
}

void TsvWriter::print_row(std::span<const Cell> cells) {
  pending_ += run_field_;
  std::size_t next = 0;  // rows mostly come in the header's order
  for (const std::string& name : header_) {
    pending_ += '\t';
    if (next < cells.size() && cells[next].column == name) {
      append_escaped(pending_, cells[next++].text);
      continue;
    }
    const auto found = std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) { return cell.column == name; });
    if (found != cells.end()) append_escaped(pending_, found->text);
  }
  pending_ += '\n';
}

void TsvWriter::flush() {
  begin();
  if (!seen_) pending_ += "#@ " + escaped_name(run_) + "\n";
  seen_ = true;
  sink_(pending_);
  pending_.clear();
}

std::string to_tsv(const std::vector<Run>& runs) {
  std::string text;
  TsvWriter writer([&](std::string_view block) { text += block; });
  for (const Run& run : runs) {
    const Table records = canonical(run.records);
    writer.run(run.name);
    for (const auto& [key, value] : run.attributes) writer.attribute(key, value);
    for (const Column& column : records.columns) writer.declare(column);
    std::vector<std::string> texts(records.columns.size());
    std::vector<TsvWriter::Cell> cells(records.columns.size());
    for (std::size_t row = 0; row < records.rows(); ++row) {
      for (std::size_t c = 0; c < cells.size(); ++c) {
        texts[c] = records.columns[c].text(row);
        cells[c] = {records.columns[c].name, texts[c]};
      }
      writer.row(cells);
    }
  }
  writer.flush();
  return text;
}

}  // namespace zs::metric

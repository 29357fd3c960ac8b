// SPDX-License-Identifier: Apache-2.0
// Where the records of a run go: text that streams out, or a table in memory.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "metric/table.hpp"
#include "metric/tsv_writer.hpp"

namespace zs::parse {

using metric::ColumnInfo;

/// The destination of one run. Cells are text as the log spells it, checked to be of the column's type.
class Rows {
 public:
  virtual ~Rows() = default;
  /// A row: a cell for each of the columns so far, in their order; empty cells are absent. Columns are only ever added.
  virtual void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) = 0;
  /// Bytes that can be read from the start of each cell of a number_row(); no cell is longer.
  static constexpr std::size_t kNumber = metric::TsvWriter::kNumber;
  /// The same for a row without texts, in the columns of the row before; may be faster.
  virtual void number_row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
    row(columns, cells);
  }
  /// REQUIRES: called once, last.
  virtual void finish(const std::map<std::string, std::string>& attributes) = 0;
};

/// The text form (zs-metrics(5)) of a run, as `writer` writes it.
class TsvRows : public Rows {
 public:
  TsvRows(const std::string& run, metric::TsvWriter& writer) : writer_(writer) { writer_.run(run); }
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void number_row(const std::vector<ColumnInfo>&, const std::vector<std::string_view>& cells) override {
    writer_.number_row(cells);
  }
  void finish(const std::map<std::string, std::string>& attributes) override;

 private:
  metric::TsvWriter& writer_;
};

/// A run in memory, for the forms that need all of it.
class RunRows : public Rows {
 public:
  explicit RunRows(metric::Run& run) : run_(run) {}
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void finish(const std::map<std::string, std::string>& attributes) override { run_.attributes = attributes; }

 private:
  metric::Run& run_;
};

/// JSON lines, as they are read. Attributes have no place in them.
class JsonlRows : public Rows {
 public:
  JsonlRows(const std::string& run, Output& out) : run_{run, {}, {}}, table_(run_), out_(out) {}
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void finish(const std::map<std::string, std::string>&) override { write(); }

 private:
  void write();

  metric::Run run_;
  RunRows table_;
  Output& out_;
};

}  // namespace zs::parse

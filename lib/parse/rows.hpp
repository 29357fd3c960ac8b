// SPDX-License-Identifier: Apache-2.0
// Where the records of a run go: text that streams out, or a table in memory.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "metric/table.hpp"

namespace zs::parse {

struct ColumnInfo {
  std::string name;
  metric::Type type;
};

/// The destination of one run. Cells are text as the log spells it, checked to be of the column's type.
class Rows {
 public:
  virtual ~Rows() = default;
  /// A row: a cell for each of the columns so far, in their order; empty cells are absent. Columns are only ever added.
  virtual void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) = 0;
  /// Bytes that can be read from the start of each cell of a number_row(); no cell is longer.
  static constexpr std::size_t kNumber = 32;
  /// The same for a row without texts, in the columns of the row before; may be faster.
  virtual void number_row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
    row(columns, cells);
  }
  /// Passes on what is held back, where that makes sense.
  virtual void flush() {}
  /// REQUIRES: called once, last.
  virtual void finish(const std::map<std::string, std::string>& attributes) = 0;
};

/// The text form (zs-metrics(5)) of a run. The first rows are held back, 2 MB of them, so that all columns and
/// attributes stand in front; of a longer run, what comes to light later is written later.
class TsvRows : public Rows {
 public:
  /// `first`: nothing was written to `out` yet. `eager`: each row is passed on at once (to follow a growing log).
  TsvRows(const std::string& run, Output& out, bool first, bool eager = false);
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void number_row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void flush() override { out_.flush(); }
  void finish(const std::map<std::string, std::string>& attributes) override;

 private:
  /// Rows from this offset of what is held have this many cells.
  struct Width {
    std::size_t offset, cells;
  };
  char* room(std::size_t size);
  void end_row();
  void write_magic();
  void write_columns();
  void write_attributes(const std::map<std::string, std::string>& attributes);
  void write_held();

  std::string run_, row_start_;  // its name as "#@" lines and as rows spell it
  Output& out_;
  bool first_, eager_;
  bool columns_written_ = false;
  std::vector<ColumnInfo> columns_;
  std::unique_ptr<char[]> held_;
  std::size_t held_size_ = 0, held_capacity_ = 0;
  std::vector<Width> widths_;
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

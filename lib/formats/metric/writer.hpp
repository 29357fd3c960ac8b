// SPDX-License-Identifier: Apache-2.0
// Destinations for the records of a run: a file of any form, a table in memory, a tracker. zs-parse writes what it
// reads from a log, zs-train what it measures.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "metric/table.hpp"
#include "metric/tsv_writer.hpp"

namespace zs::metric {

/// The destination of one run. A training has any number of them; all get the same calls.
class Writer {
 public:
  using Facts = std::map<std::string, std::string>;

  virtual ~Writer() = default;
  /// Facts that are known before the first row. Called once, first.
  virtual void begin(const std::string& /*run*/, const Facts& /*attributes*/) {}
  /// A row: a cell for each column so far, in order, in the text form; empty if absent. Columns are only added, never
  /// removed.
  virtual void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) = 0;
  /// Called after each row of a training. `now`: readers must find the row; else only if it is cheap.
  virtual void flush(bool /*now*/) {}
  /// All that is known about the run. Called once, last.
  virtual void finish(const Facts& attributes) = 0;
};

/// The text form (zs-metrics(5)) of a run, written by `writer`.
class TextWriter : public Writer {
 public:
  explicit TextWriter(TsvWriter& writer) : writer_(writer) {}
  void begin(const std::string& run, const Facts& attributes) override;
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void finish(const Facts& attributes) override;

 private:
  TsvWriter& writer_;
  Facts begun_;
};

/// A run in memory, for the forms that need all of it.
class MemoryWriter : public Writer {
 public:
  explicit MemoryWriter(Run& run) : run_(run) {}
  void begin(const std::string& run, const Facts& attributes) override;
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void finish(const Facts& attributes) override { run_.attributes = attributes; }

 private:
  Run& run_;
};

/// The HDF5 form in a file that is complete at any time, also after a kill -9: it is always replaced as a whole. A file
/// that grows in place cannot promise that: HDF5 refuses one whose writer was killed, and one written for SWMR (on a
/// local file system) opens only in programs that ask for SWMR. This costs 4 ms per MB: 100,000 steps are 9 MB. At most
/// `share` of the time is spent on it, so the file lags behind by a second, or by the time of a rewrite divided by
/// `share`.
class FileWriter : public Writer {
 public:
  explicit FileWriter(std::string path, double share = 0.01) : path_(std::move(path)), share_(share), table_(run_) {}
  void begin(const std::string& run, const Facts& attributes) override { table_.begin(run, attributes); }
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override {
    table_.row(columns, cells);
  }
  /// Whether flush(now) would write.
  bool due(bool now) const { return now || std::chrono::steady_clock::now() >= next_; }
  void flush(bool now) override;
  void finish(const Facts& attributes) override;
  /// The run so far, to add attributes between rows.
  Run& run() { return run_; }

 private:
  std::string path_;
  double share_;
  Run run_;
  MemoryWriter table_;
  std::chrono::steady_clock::time_point next_{};
};

void write_row(const Table& records, std::size_t row, Writer& writer);

}  // namespace zs::metric

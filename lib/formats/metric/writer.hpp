// SPDX-License-Identifier: Apache-2.0
// Where the records of a run go, one after another: a file of any form, a table in memory, later a service. zs-parse
// writes what it reads of a log so, zs-train what it measures.
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

/// The destination of one run. A training has any number of them; each gets the same calls.
class Writer {
 public:
  using Facts = std::map<std::string, std::string>;

  virtual ~Writer() = default;
  /// What is known before the first row. Once, first.
  virtual void begin(const std::string& /*run*/, const Facts& /*attributes*/) {}
  /// A row: a cell for each of the columns so far, in their order, as the text form spells it; an empty one is absent.
  /// Columns are only ever added.
  virtual void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) = 0;
  /// After a row of a training: `now`, readers are to find it; else whenever it costs little.
  virtual void flush(bool /*now*/) {}
  /// All that is known of the run. Once, last.
  virtual void finish(const Facts& attributes) = 0;
};

/// The text form (zs-metrics(5)) of a run, as `writer` writes it.
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

/// JSON lines, as they are read. Attributes have no place in them.
class JsonlWriter : public Writer {
 public:
  explicit JsonlWriter(Output& out) : table_(run_), out_(out) {}
  void begin(const std::string& run, const Facts& attributes) override { table_.begin(run, attributes); }
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void finish(const Facts&) override { write(); }

 private:
  void write();

  Run run_;
  MemoryWriter table_;
  Output& out_;
};

/// The HDF5 form in a file that is complete whenever somebody reads it, also after a kill -9: it is replaced as a
/// whole. A file that grows in place cannot promise that: HDF5 refuses one whose writer was killed, and one that was
/// written for SWMR (on a local file system) opens in programs alone that ask for SWMR. The price is 4 ms for each MB:
/// 100,000 steps are 9 MB. At most `share` of the time goes into it, so what is read lags behind by a second, or by
/// what a rewriting takes over that share.
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
  /// What is written, to be added to between rows.
  Run& run() { return run_; }

 private:
  std::string path_;
  double share_;
  Run run_;
  MemoryWriter table_;
  std::chrono::steady_clock::time_point next_{};
};

/// Hands row `row` of `records` to `writer`.
void write_row(const Table& records, std::size_t row, Writer& writer);

}  // namespace zs::metric

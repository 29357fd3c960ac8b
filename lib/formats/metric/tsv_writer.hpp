// SPDX-License-Identifier: Apache-2.0
// The text form, row by row: what a tool prints that reads a log of any length.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metric/table.hpp"

namespace zs::metric {

/// Memory stays constant but for the names of runs. A column may come up at any row: where rows were already passed on,
/// the header is printed anew, under "#zs-metrics 1 continued".
class TsvWriter {
 public:
  using Sink = std::function<void(std::string_view)>;
  /// The first `hold` bytes of a run's rows wait, so that columns and attributes that come up among them stand in
  /// front; later rows are passed on in blocks of about `block` bytes. With 0 for both, each row at once.
  explicit TsvWriter(Sink sink, std::size_t hold = 0, std::size_t block = 1 << 18)
      : sink_(std::move(sink)), hold_(hold), block_(block) {}

  /// What follows belongs to this run. Throws Error if the name is empty or was there before.
  void run(std::string_view name);
  /// An attribute of the current run; may come at any time, the last value of a key holds.
  void attribute(std::string_view key, std::string_view value);
  /// The columns of the rows that follow: those so far, and perhaps more behind them. Throws Error if a name is empty
  /// or "run".
  void columns(const std::vector<ColumnInfo>& columns);
  /// One record of the current run: a cell for each column, "" where it is absent.
  void row(std::span<const std::string_view> cells);
  /// Ends the current run and hands all that is pending to the sink. To be called at the end.
  void flush();

 private:
  /// Rows from this offset of what is held have this many cells.
  struct Width {
    std::size_t offset, cells;
  };
  char* room(std::size_t size);
  void end_row();
  void print_head();
  void print_held();

  Sink sink_;
  const std::size_t hold_, block_;
  std::set<std::string, std::less<>> runs_;
  std::string run_, run_field_;  // the name as "#@" lines and as rows spell it
  std::string attributes_;       // lines that are not printed yet
  std::vector<ColumnInfo> columns_;
  bool begun_ = false, has_head_ = false, has_rows_ = false;
  bool told_ = true;  // the current run has been named in what was printed
  std::unique_ptr<char[]> held_;
  std::size_t held_size_ = 0, held_capacity_ = 0;
  std::vector<Width> widths_;
};

}  // namespace zs::metric

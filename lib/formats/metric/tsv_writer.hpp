// SPDX-License-Identifier: Apache-2.0
// Writes the text form row by row, for tools that read a log of any length.
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

/// Memory stays constant except for the names of runs. A column may first appear at any row: if rows were already
/// written, the header is repeated under "#zs-metrics 1 continued".
class TsvWriter {
 public:
  using Sink = std::function<void(std::string_view)>;
  /// Holds back the first `hold` bytes of a run's rows, so that new columns and attributes can still go into the
  /// header; later rows are passed on in blocks of about `block` bytes. With 0 for both, each row at once.
  explicit TsvWriter(Sink sink, std::size_t hold = 0, std::size_t block = 1 << 18)
      : sink_(std::move(sink)), hold_(hold), block_(block) {}

  /// Starts a run: everything that follows belongs to it. Throws Error if the name is empty or was used before.
  void run(std::string_view name);
  /// An attribute of the current run, at any time; the last value of a key wins.
  void attribute(std::string_view key, std::string_view value);
  /// The columns of the following rows: all previous columns, optionally with more after them. Throws Error if a name
  /// is empty or "run".
  void columns(const std::vector<ColumnInfo>& columns);
  /// One record of the current run: a cell for each column, "" if absent.
  void row(std::span<const std::string_view> cells);
  /// Ends the current run and passes everything pending to the sink. Call it at the end.
  void flush();

 private:
  /// From this offset in the held rows on, rows have this many cells.
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
  std::string run_, run_field_;  // the name as in "#@" lines and as in rows
  std::string attributes_;       // lines not yet written
  std::vector<ColumnInfo> columns_;
  bool begun_ = false, has_head_ = false, has_rows_ = false;
  bool told_ = true;  // the output names the current run
  std::unique_ptr<char[]> held_;
  std::size_t held_size_ = 0, held_capacity_ = 0;
  std::vector<Width> widths_;
};

}  // namespace zs::metric

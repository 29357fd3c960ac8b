// SPDX-License-Identifier: Apache-2.0
// The text form, row by row: what a tool prints that reads a log of any length.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metric/table.hpp"

namespace zs::metric {

/// Memory stays constant but for the names of runs. A column may come up at any row: the header is then printed anew,
/// under "#zs-metrics 1 continued".
class TsvWriter {
 public:
  using Sink = std::function<void(std::string_view)>;

  /// A value of a column. Absent cells are left out, or have no text.
  struct Cell {
    std::string_view column;
    std::string_view text;
  };

  explicit TsvWriter(Sink sink) : sink_(std::move(sink)) {}

  /// What follows belongs to this run. Throws Error if the name is empty or was there before.
  void run(std::string_view name);
  /// An attribute of the current run; may come at any time, the last value of a key holds.
  void attribute(std::string_view key, std::string_view value);
  /// Type and unit of a column, printed in front of its first header. Without it a column that is not a standard one
  /// gets its type from its values when it is read. Throws Error if the name is empty or "run".
  void declare(const Column& column);
  /// One record of the current run.
  void row(std::span<const Cell> cells);
  /// Hands all that is pending to the sink. To be called at the end; rows are handed on in blocks before it.
  void flush();

 private:
  void begin();
  bool fits(std::span<const Cell> cells) const;
  bool known(const Cell& cell) const;
  void print_header(std::span<const Cell> cells);
  void print_row(std::span<const Cell> cells);

  Sink sink_;
  std::string pending_, run_, run_field_;
  std::set<std::string, std::less<>> runs_;
  std::map<std::string, Column, std::less<>> declared_;
  std::vector<std::string> header_;
  bool begun_ = false, seen_ = true, first_row_ = true, has_header_ = false, redeclared_ = false;
};

}  // namespace zs::metric

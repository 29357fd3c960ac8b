// SPDX-License-Identifier: Apache-2.0
// All runs as one table of texts, in memory: a row per run, ordered by id, a column per field that any run has. Each
// column stores its distinct values once, so that a hundred thousand runs are filtered and sorted in milliseconds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "registry/record.hpp"

namespace zs::registry {

struct Column {
  std::string name;
  std::vector<std::string> values;   ///< the distinct values; the first is "", absent
  std::vector<std::uint32_t> codes;  ///< per row, the index of its value

  const std::string& text(std::size_t row) const { return values[codes[row]]; }
};

class Runs {
 public:
  std::size_t size() const { return times.size(); }
  /// The column called `name`, or nothing.
  const Column* find(std::string_view name) const;
  /// The cell, or "".
  const std::string& text(std::size_t row, std::string_view column) const;
  /// The fields that a run has.
  Fields fields(std::size_t row) const;

  std::vector<Column>
      columns;  ///< run_id, run_name, timestamp, sweep_name, status, known settings, then the others by name
  std::vector<std::int64_t> times;  ///< per row, the change time (ns) of the run's folder when it was read; 0 if a
                                    ///< later change could go unnoticed
  std::size_t closed = 0;           ///< runs that the caller may not read, which are not in the table
  std::string csv;  ///< the name of the file with this table; "" if another program's file has that name
};

/// One row of a new table: a row of an earlier table, or newly read fields.
struct Row {
  std::size_t earlier = 0;  ///< used if `fresh` is null
  const Fields* fresh = nullptr;
  std::int64_t time = 0;
};

/// The table of `rows`, in that order.
Runs assemble(const Runs& earlier, const std::vector<Row>& rows);

}  // namespace zs::registry

// SPDX-License-Identifier: Apache-2.0
// All runs as one table of texts, in memory: a row per run, ordered by id, a column per field that any run has. Each
// column stores its distinct values once, so that a hundred thousand runs are filtered and sorted in milliseconds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
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
  std::size_t size() const { return columns.empty() ? 0 : columns.front().codes.size(); }
  /// The column called `name`, or nothing.
  const Column* find(std::string_view name) const;
  /// The cell, or "".
  const std::string& text(std::size_t row, std::string_view column) const;
  /// The fields that a run has.
  Fields fields(std::size_t row) const;

  std::vector<Column>
      columns;             ///< run_id, run_name, timestamp, sweep_name, status, known settings, then the others by name
  std::size_t closed = 0;  ///< runs that the caller may not read, which are not in the table
  std::string csv;         ///< the name of the file with this table; "" if another program's file has that name
};

/// The table of `rows`, in that order.
Runs assemble(const std::vector<Fields>& rows);

// All runs of a registry, and runs.csv, their table for people and pandas. It is only a copy of the runs' records: it
// may be deleted, outdated or written by several processes at once. It contains only what everyone with access to the
// registry may read.

/// All runs with their current records, ordered by id. Then updates runs.csv if possible (a read-only registry is also
/// read). A run with a damaged record is reported to `faults` and left out; runs that the caller may not read are
/// counted. A runs.csv of another program is not changed. Throws Error if `registry` is not a folder.
Runs read_runs(const std::string& registry, const FaultSink& faults);

/// For writers of runs: updates runs.csv unless that was done within the last second, or would take long (a registry of
/// more than some thousand runs). Never fails: runs.csv is only a copy.
void refresh_soon(const std::string& registry);

/// Whether that is a name of runs.csv; other programs use it for their tables, too.
bool is_csv_name(std::string_view name);

/// Removes what killed writers left more than an hour ago: half-written files, half-removed runs.
void tidy(const std::string& registry);

/// The table as CSV (RFC 4180): a header, then a line per run.
std::string to_csv(const Runs& runs);

}  // namespace zs::registry

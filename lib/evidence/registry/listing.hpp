// SPDX-License-Identifier: Apache-2.0
// The listings of zs-runs: which columns matter, the fields of one run, the differences of two;
// statistics, and OpenMetrics.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sheet.hpp"
#include "registry/runs.hpp"

namespace zs::registry {

enum class Topic { identity, configuration, environment, metric };
Topic topic(std::string_view column);
std::string_view name(Topic topic);

/// A query of the table; names of columns as users type them.
struct Question {
  std::vector<std::string> filters{};  ///< see parse_filter
  bool any = false;                    ///< one matching filter is enough
  std::optional<std::string> sweep{};
  std::string sort_by{};  ///< "" keeps the order of ids, which is the order of time
  bool descending = false;
  std::optional<std::size_t> limit{};
  std::vector<std::string> show{}, hide{};  ///< empty `show`: all columns, or the most informative ones
  bool telling = false;  ///< show only columns that identify and distinguish runs: id, name, requested ones, status,
                         ///< the loss, settings that differ, metrics, job, nodes and restarts
};

struct Answer {
  std::vector<std::size_t> rows;     ///< indices in the table
  std::vector<std::string> columns;  ///< their names
  std::size_t matching = 0;          ///< runs, before the limit
  std::string sorted;                ///< the column sorted by, or ""
};

/// Throws Error or UsageError at an invalid query.
Answer ask(const Runs& runs, const Question& question);

/// The cells of `rows` in `columns`; a column that no run has is empty.
Sheet listing(const Runs& runs, const std::vector<std::size_t>& rows, const std::vector<std::string>& columns);

/// Every column: its topic, the number of runs that have it, its number of distinct values, and one of them.
Sheet column_listing(const Runs& runs);

/// The fields of a run: topic, field, value.
Sheet run_listing(const Runs& runs, std::size_t row);

/// The fields in which two runs differ: topic, field, and both values, under their ids. Numbers are compared as
/// numbers; the identity of the runs is left out.
Sheet difference(const Runs& runs, std::size_t a, std::size_t b);

// Outcomes of runs as OpenMetrics text, for the textfile collector of a Prometheus node exporter.

/// Each numeric outcome column is a gauge, zs_run_COLUMN, with a sample for each run that has it, labelled with its id,
/// name and sweep; zs_run_status is 1 for a run's status. Ends with "# EOF".
std::string to_openmetrics(const Sheet& sheet);

// Statistics of the columns of some runs.

/// A row for each nonempty column of `sheet` except run_id: the number of runs that have a value, and of distinct
/// values; for numbers mean, standard deviation (n - 1), minimum, quartiles and maximum of the finite ones, and the
/// number of those not finite; for other values, and for few numbers, the values and how many runs have each, the most
/// frequent first.
Sheet statistics(const Sheet& sheet);

}  // namespace zs::registry

// SPDX-License-Identifier: Apache-2.0
// Summarises runs: one row of figures per condition. Its columns are the rows of summary_columns.hpp.
#pragma once
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "stat/work.hpp"

namespace zs::stat {

struct Summary {
  metric::Store store;                ///< the runs, with the column "timed", and summary, curves, tables and attributes
  std::vector<std::string> warnings;  ///< messages for the user: a shortened warm-up, removed timings
};

/// Takes the runs of `store` and recomputes any summary in it. Throws Error if it has no runs, or if none has an
/// attribute of `by`; UsageError if none has a column of `columns`.
Summary summarize(metric::Store store, const SummaryRule& rule);

}  // namespace zs::stat

// SPDX-License-Identifier: Apache-2.0
// Runs in, one row of figures per condition out. Its columns are the rows of summary_columns.hpp.
#pragma once
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "stat/work.hpp"

namespace zs::stat {

struct Summary {
  metric::Store store;                ///< the runs, with the column "timed", and summary, curves, tables and attributes
  std::vector<std::string> warnings;  ///< what the user should know: a warm-up cut short, timings removed
};

/// Takes the runs of `store`; a summary it may hold already is made anew. Throws Error where it has no runs, or where
/// none has an attribute of `by`; UsageError at one of `columns` that none has.
Summary summarize(metric::Store store, const SummaryRule& rule);

}  // namespace zs::stat

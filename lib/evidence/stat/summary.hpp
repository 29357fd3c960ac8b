// SPDX-License-Identifier: Apache-2.0
// Runs in, one row of figures per condition out. The columns are described in zs-metrics(5).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "stat/condition.hpp"
#include "stat/detail.hpp"

namespace zs::stat {

struct SummaryRule {
  std::vector<std::string> by;  ///< attributes that group runs; empty: every run is a condition
  TimingRule timing;
  Deviation deviation = Deviation::sample;
  DetailRule detail;
  std::vector<std::string> columns{};  ///< columns of one's own to summarise too; see stat/columns.hpp
};

struct Summary {
  metric::Store store;                ///< the runs as they came, with summary, curves, tables and attributes
  std::vector<std::string> warnings;  ///< what the user should know: a warm-up cut short, timings removed
};

/// Takes the runs of `store`; a summary it may hold already is made anew. Throws Error where it has no runs, or where
/// none has an attribute of `by`; UsageError at one of `columns` that none has.
Summary summarize(metric::Store store, const SummaryRule& rule);

}  // namespace zs::stat

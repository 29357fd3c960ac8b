// SPDX-License-Identifier: Apache-2.0
// The conditions of a summary as a table of runs: filtered and sorted as runs of a registry are, or taken into one.
#pragma once
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "registry/runs.hpp"

namespace zs::summary {

/// A row per condition, in the summary's order: its columns, run_name with the condition's name, and the attributes
/// that all of its runs share. REQUIRES: `store` has a summary.
registry::Runs as_runs(const metric::Store& store);

struct Choice {
  std::vector<std::string> filters{};  ///< as zs-runs --filter has them; all must hold
  std::string sort_by{};               ///< a column, or ""
  bool descending = false;
};

/// The runs of the conditions that `choice` leaves, in its order. Throws Error where it leaves none, or knows no such
/// column; UsageError at what is no filter. REQUIRES: `store` has a summary.
std::vector<metric::Run> chosen(metric::Store store, const Choice& choice);

/// The conditions of the summary in the metric file `path`, as a table with tabs. Throws Error where it has none.
std::string table_of(const std::string& path);

}  // namespace zs::summary

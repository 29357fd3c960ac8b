// SPDX-License-Identifier: Apache-2.0
// Reads operands as a summary, and chooses conditions of it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "input/source.hpp"
#include "metric/table.hpp"
#include "registry/runs.hpp"
#include "stat/work.hpp"

namespace zs::summary {

/// Reads the operands. A single summary is returned unchanged; anything else is summarised with zs-aggregate's
/// defaults. Runs get their run_name if that distinguishes them. Throws Error if an input is empty, or two runs have
/// the same name. They are grouped by attributes only if all runs have these.
metric::Store read(const std::vector<input::Named>& named, const input::Listener& listener,
                   const std::function<void(const std::string&)>& warn, stat::SummaryRule rule = {});

// The conditions of a summary as a table of runs: filtered and sorted like runs of a registry, or imported into one.

/// A row per condition, in the summary's order: its columns, run_name with the condition's name, and the attributes
/// that all of its runs share. REQUIRES: `store` has a summary.
registry::Runs as_runs(const metric::Store& store);

struct Choice {
  std::vector<std::string> filters{};  ///< as zs-runs --filter; all must match
  std::string sort_by{};               ///< a column, or ""
  bool descending = false;
};

/// The runs of the conditions that `choice` selects, in its order. Throws Error if it selects none, or names an unknown
/// column; UsageError at an invalid filter. REQUIRES: `store` has a summary.
std::vector<metric::Run> chosen(metric::Store store, const Choice& choice);

/// The conditions of the summary in the metric file `path`, as a tab-separated table. Throws Error if it has none.
std::string table_of(const std::string& path);

}  // namespace zs::summary

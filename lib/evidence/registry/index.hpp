// SPDX-License-Identifier: Apache-2.0
// All runs of a registry, and runs.csv, their table for people and pandas. It is only a copy of the runs' records: it
// may be deleted, outdated or written by several processes at once. It contains only what everyone with access to the
// registry may read.
#pragma once
#include <string>

#include "base/error.hpp"
#include "registry/runs.hpp"

namespace zs::registry {

/// All runs with their current records, ordered by id. Then updates runs.csv if possible (a read-only registry is also
/// read). A run with a damaged record is reported to `faults` and left out; runs that the caller may not read are
/// counted. A runs.csv of another program is not changed. Throws Error if `registry` is not a folder.
Runs read_runs(const std::string& registry, const FaultSink& faults);

/// For writers of runs: updates runs.csv unless that was done within the last second, or would take long (a registry of
/// more than some thousand runs). Never fails: runs.csv is only a copy.
void refresh_soon(const std::string& registry);

/// Removes what killed writers left more than an hour ago: half-written files, half-removed runs.
void tidy(const std::string& registry);

/// The table as CSV (RFC 4180): a header, then a line per run.
std::string to_csv(const Runs& runs);

}  // namespace zs::registry

// SPDX-License-Identifier: Apache-2.0
// The index of a registry: runs.csv for people and pandas, and .runs.index, a faster form for zs. Both are only copies
// of the runs' records: they may be deleted, outdated or written by several processes at once. They contain only what
// everyone with access to the registry may read. zs uses .runs.index only if the caller or the registry's owner owns
// it.
#pragma once
#include <string>

#include "base/error.hpp"
#include "registry/runs.hpp"

namespace zs::registry {

/// All runs with their current records: the index, with changed records read again. Then updates the index on disk if
/// possible (a read-only registry is also read). `anew` reads every record. A run with a damaged record is reported to
/// `faults` and left out; runs that the caller may not read are counted. A runs.csv of another program is not changed.
/// Throws Error if `registry` is not a folder.
Runs read_runs(const std::string& registry, const FaultSink& faults, bool anew = false);

/// For writers of runs: updates the index unless that was done within the last second, or would take long (a registry
/// of more than some ten thousand runs). Never fails: the index is only a copy.
void refresh_soon(const std::string& registry);

/// Removes what killed writers left more than an hour ago: half-written files, half-removed runs.
void tidy(const std::string& registry);

/// The table as CSV (RFC 4180): a header, then a line per run.
std::string to_csv(const Runs& runs);

}  // namespace zs::registry

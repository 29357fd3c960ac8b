// SPDX-License-Identifier: Apache-2.0
// The index of a registry: runs.csv for people and pandas, and .runs.index, from which zs reads the same fast.
// Both are only copies of the runs' records: they may be deleted, stale or written by several processes at once. They
// hold what everybody who may enter the registry may read, and .runs.index counts only if it is the caller's or the
// registry's owner's.
#pragma once
#include <string>

#include "base/error.hpp"
#include "registry/runs.hpp"

namespace zs::registry {

/// All runs, as their records are now: the index, with what changed since read anew. Then the index on disk is brought
/// up to date if it can be (a registry that may not be written is read all the same). `anew` reads every record.
/// A run whose record is damaged is reported to `faults` and left out; one that its owner keeps to itself is counted.
/// A runs.csv that zs has not written is left as it is. Throws Error where `registry` is not a folder.
Runs read_runs(const std::string& registry, const FaultSink& faults, bool anew = false);

/// For who writes runs: brings the index up to date unless that was done within the last second, or would take long
/// (a registry of more than some ten thousand runs). Never fails: the index is only a copy.
void refresh_soon(const std::string& registry);

/// Removes what writers that were killed left behind more than an hour ago: half-written files, half-removed runs.
void tidy(const std::string& registry);

/// The table as CSV (RFC 4180), a line per run under a header.
std::string to_csv(const Runs& runs);

}  // namespace zs::registry

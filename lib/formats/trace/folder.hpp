// SPDX-License-Identifier: Apache-2.0
// The traces of a training: a file for each rank, named one by one or by their folder.
#pragma once
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace zs::trace {

/// The traces in files and folders, prepared, by rank. A folder stands for its *.pt.trace.json(.gz, .zst), or where it
/// has none for its *.json. Beside what read() calls a fault, so are two traces of one rank, kernels that begin before
/// their launch, and operators that end after the one that calls them: a clock that went back. Throws Error as read(),
/// and where a folder has no trace.
std::vector<Trace> read_all(const std::vector<std::string>& paths, bool with_last_step, const FaultSink& faults);

/// Whether a folder has traces of PyTorch's profiler, by their names.
bool has_traces(const std::string& folder);

}  // namespace zs::trace

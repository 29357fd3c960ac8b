// SPDX-License-Identifier: Apache-2.0
// The traces of a training: a file for each rank.
#pragma once
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace zs::trace {

/// The traces in files, prepared, by rank. Beside what read() calls a fault, so are two traces of one rank, kernels
/// that begin before their launch, and operators that end after the one that calls them: a clock that went back. Throws
/// Error as read().
std::vector<Trace> read_all(const std::vector<std::string>& files, bool with_last_step, const FaultSink& faults);

}  // namespace zs::trace

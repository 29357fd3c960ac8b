// SPDX-License-Identifier: Apache-2.0
// Profiler traces as a separate report or as a section of another.
#pragma once
#include <vector>

#include "report/document.hpp"
#include "trace/trace.hpp"

namespace zs::report {

/// The figure, and a table for each analysis with a result.
Section trace_section(const std::vector<trace::Trace>& traces);

/// A report of that section alone. The verdict is open: a profile is neither right nor wrong.
Document trace(const std::vector<trace::Trace>& traces);

}  // namespace zs::report

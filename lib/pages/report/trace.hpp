// SPDX-License-Identifier: Apache-2.0
// What profiler traces say, as a report of its own or as a section of another.
#pragma once
#include <vector>

#include "report/document.hpp"
#include "trace/trace.hpp"

namespace zs::report {

/// The figure, and a table for each analysis that has something to say.
Section trace_section(const std::vector<trace::Trace>& traces);

/// A report of nothing else. The verdict is open: a profile has no right or wrong.
Document trace(const std::vector<trace::Trace>& traces);

}  // namespace zs::report

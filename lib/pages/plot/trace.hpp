// SPDX-License-Identifier: Apache-2.0
// The figure of profiler traces: where the time of each rank went, and what the end waited for.
#pragma once
#include "plot/figures.hpp"
#include "trace/analysis.hpp"

namespace zs::plot {

/// Of traces with GPUs: a map of ranks by computing, other work and idle time; the kernels of most time; what the
/// critical path was bound by; the queues of streams. Of any: the annotations of most time, the memory of each device,
/// and of several ranks whom the others waited for. What the traces do not have is left out; throws Error where that
/// is all of it.
Figure trace_figure(const trace::Question& question);

}  // namespace zs::plot

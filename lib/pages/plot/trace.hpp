// SPDX-License-Identifier: Apache-2.0
// The figure of profiler traces: the time of each rank, and the critical path.
#pragma once
#include "plot/figures.hpp"
#include "trace/analysis.hpp"

namespace zs::plot {

/// For traces with GPUs: a map of ranks by computing, other work and idle time; the kernels with the most time; what
/// bounds the critical path; the queues of streams. For all: the annotations with the most time, the memory of each
/// device, and for several ranks which one the others waited for. Leaves out what the traces do not have; throws Error
/// if nothing remains.
Figure trace_figure(const trace::Question& question);

}  // namespace zs::plot

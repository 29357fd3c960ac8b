// SPDX-License-Identifier: Apache-2.0
// The critical path: the chain of work that determined when the trace ended.
#pragma once
#include <vector>

#include "base/sheet.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// A part of the path, walked from the end of the trace to its beginning.
struct Stretch {
  enum class Bound { computation, communication, memory, other, launch, queue, host };
  Bound bound;
  double begin, end;   ///< us
  std::int32_t event;  ///< index in Trace::events; -1: none (host)
};

/// The path of a rank: from its last event on a GPU back to the event that it waited for, and so on. A kernel waits for
/// the previous one on its stream or, if launched after that had ended, for the host; if neither ran for longer than
/// `kernel_delay` before it, it waited for the stream whose event ended last in that time. The host waits for a GPU in
/// calls that synchronise. Stretches have no gaps, so their sum is the path's length. Empty if nothing ran on a GPU.
std::vector<Stretch> critical_path(const Trace& trace, double kernel_delay);

class Question;
/// A row per rank and kind of work that bounded it.
Sheet critical(const Question& question, std::size_t most);
/// The kernels with the most time on the paths.
Sheet critical_kernels(const Question& question, std::size_t most);

}  // namespace zs::trace

// SPDX-License-Identifier: Apache-2.0
// The chain of work that the end of a trace waited for: what would have to be faster for it to come sooner.
#pragma once
#include <string>
#include <vector>

#include "base/sheet.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// A stretch of the path, walked from the end of the trace to its beginning.
struct Stretch {
  enum class Bound { computation, communication, memory, other, launch, queue, host };
  Bound bound;
  double begin, end;   ///< us
  std::int32_t event;  ///< what ran, of Trace::events; -1: nothing (host)
};

/// The path of a rank: from its last event on a GPU back to what that waited for, and so on. A kernel waits for the one
/// before it on its stream, or, where it was launched after that had ended, for the host; where nothing ran for
/// longer than `kernel_delay` behind both, it waited for the stream whose event ended last in that time; the host waits
/// for a GPU in calls that synchronise. Stretches join without gaps, so their sum is its length. Empty where nothing
/// ran on a GPU.
std::vector<Stretch> critical_path(const Trace& trace, double kernel_delay);

class Question;
/// A row for each rank and what bound it.
Sheet critical(const Question& question, std::size_t most);
/// The kernels of most time on the paths.
Sheet critical_kernels(const Question& question, std::size_t most);

}  // namespace zs::trace

// SPDX-License-Identifier: Apache-2.0
// Launch delays of kernels and copies, and which operators cause them.
#pragma once
#include <map>
#include <vector>

#include "base/sheet.hpp"
#include "trace/sums.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// A row per rank: the delays of its launches.
Sheet launch(const std::vector<Trace>& traces, const Settings& settings);

/// A row for each operator and kernel that it launched, most late starts first.
Sheet delays(const std::vector<Trace>& traces, const Settings& settings);

// Queue lengths of streams: how many launches waited to begin.

/// The length of a queue after each point in time.
struct Queue {
  std::vector<double> times, lengths;
};
/// The queue of each stream: plus one at a launch, minus one when the kernel begins.
std::map<std::int32_t, Queue> queues(const Trace& trace);

/// A row per stream.
Sheet queue(const std::vector<Trace>& traces, const Settings& settings);

// Stragglers: which rank the others wait for, by collective.

/// A row for each collective and the rank that most often entered it last, the longest waits first. The n-th call with
/// a name is one collective on all ranks. The rank with the shortest call came last, and the longer calls of the others
/// include their wait: so no common clock is needed. Uses NCCL's kernels if there are any, else what PyTorch and zs
/// annotate as communication. Empty for fewer than two ranks.
Sheet stragglers(const std::vector<Trace>& traces, const Settings& settings);

}  // namespace zs::trace

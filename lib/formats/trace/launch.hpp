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

}  // namespace zs::trace

// SPDX-License-Identifier: Apache-2.0
// Queues of streams: how many launches waited to begin.
#pragma once
#include <map>
#include <vector>

#include "base/sheet.hpp"
#include "trace/sums.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// How long a queue was from each of some times on.
struct Queue {
  std::vector<double> times, lengths;
};
/// The queue of each stream: one more at a launch, one less where its kernel begins.
std::map<std::int32_t, Queue> queues(const Trace& trace);

/// A row for each stream.
Sheet queue(const std::vector<Trace>& traces, const Settings& settings);

}  // namespace zs::trace

// SPDX-License-Identifier: Apache-2.0
// Stragglers: which rank the others wait for, by collective.
#pragma once
#include <vector>

#include "base/sheet.hpp"
#include "trace/sums.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// A row for each collective and the rank that most often entered it last, the longest waits first. The n-th call with
/// a name is one collective on all ranks. The rank with the shortest call came last, and the longer calls of the others
/// include their wait: so no common clock is needed. Uses NCCL's kernels if there are any, else what PyTorch and zs
/// annotate as communication. Empty for fewer than two ranks.
Sheet stragglers(const std::vector<Trace>& traces, const Settings& settings);

}  // namespace zs::trace

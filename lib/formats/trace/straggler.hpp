// SPDX-License-Identifier: Apache-2.0
// Which rank the others wait for, by collective.
#pragma once
#include <vector>

#include "base/sheet.hpp"
#include "trace/sums.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// A row for each collective and the rank that came last to it most often, the longest waits first. The n-th call of a
/// name is one collective on all ranks. The rank that is in it shortest came last, and what the others are in it
/// longer is their wait: so it needs no common clock. NCCL's kernels where there are any, else what PyTorch and zs
/// annotate as communication. Nothing of fewer than two ranks.
Sheet stragglers(const std::vector<Trace>& traces, const Settings& settings);

}  // namespace zs::trace

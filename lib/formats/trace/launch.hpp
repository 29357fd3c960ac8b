// SPDX-License-Identifier: Apache-2.0
// Launches of kernels and copies: how long they waited to begin, and whose do so often.
#pragma once
#include <vector>

#include "base/sheet.hpp"
#include "trace/sums.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// A row for each rank: the delays of its launches.
Sheet launch(const std::vector<Trace>& traces, const Settings& settings);

/// A row for each operator and kernel that it launched: those with most late starts first.
Sheet delays(const std::vector<Trace>& traces, const Settings& settings);

}  // namespace zs::trace

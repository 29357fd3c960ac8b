// SPDX-License-Identifier: Apache-2.0
// Reads operands as a summary.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "input/source.hpp"
#include "metric/table.hpp"
#include "stat/work.hpp"

namespace zs::summary {

/// Reads the operands. A single summary is returned unchanged; anything else is summarised with zs-aggregate's
/// defaults. Runs get their run_name if that distinguishes them. Throws Error if an input is empty, or two runs have
/// the same name. They are grouped by attributes only if all runs have these.
metric::Store read(const std::vector<input::Named>& named, const input::Listener& listener,
                   const std::function<void(const std::string&)>& warn, stat::SummaryRule rule = {});

}  // namespace zs::summary

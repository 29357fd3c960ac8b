// SPDX-License-Identifier: Apache-2.0
// What people have, as a summary.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "input/source.hpp"
#include "metric/table.hpp"

namespace zs::summary {

/// Reads what was named. One summary alone is taken as it is; anything else is summarised as zs-aggregate does by
/// default. Runs are called by their run_name where that tells them apart. Throws Error where an input holds nothing,
/// or two runs have one name. Runs that all have the attribute `by` are grouped by it.
metric::Store read(const std::vector<input::Named>& named, const input::Listener& listener,
                   const std::function<void(const std::string&)>& warn, const std::string& by = "");

}  // namespace zs::summary

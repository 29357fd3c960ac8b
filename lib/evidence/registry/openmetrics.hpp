// SPDX-License-Identifier: Apache-2.0
// The outcomes of runs as OpenMetrics text, which the textfile collector of a Prometheus node exporter takes.
#pragma once
#include <string>

#include "base/sheet.hpp"

namespace zs::registry {

/// Each column of numbers that tells an outcome is a gauge, zs_run_COLUMN, with a sample for each run that has it,
/// under its id, name and sweep; zs_run_status is 1 for the status that a run has. Ends with "# EOF".
std::string to_openmetrics(const Sheet& sheet);

}  // namespace zs::registry

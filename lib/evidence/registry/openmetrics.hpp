// SPDX-License-Identifier: Apache-2.0
// Outcomes of runs as OpenMetrics text, for the textfile collector of a Prometheus node exporter.
#pragma once
#include <string>

#include "base/sheet.hpp"

namespace zs::registry {

/// Each numeric outcome column is a gauge, zs_run_COLUMN, with a sample for each run that has it, labelled with its id,
/// name and sweep; zs_run_status is 1 for a run's status. Ends with "# EOF".
std::string to_openmetrics(const Sheet& sheet);

}  // namespace zs::registry

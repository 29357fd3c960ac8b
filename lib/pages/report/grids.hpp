// SPDX-License-Identifier: Apache-2.0
// Tables whose rows the data decide: facts by name, runs that stand out.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "metric/table.hpp"
#include "report/document.hpp"
#include "report/findings.hpp"

namespace zs::report {

/// A number that the runs of a condition agree on; "-" without one.
Cell fact_cell(const Condition& condition, const std::string& name);
/// A row for each fact whose name begins so, a column for each condition; nothing where there is none.
std::optional<Grid> fact_grid(const Findings& found, std::string_view beginning, const std::string& title);
/// Every run that stands out among like ones; nothing where the summary has no such table.
std::optional<Grid> outlier_grid(const metric::Store& store);

}  // namespace zs::report

// SPDX-License-Identifier: Apache-2.0
// Tables with rows that depend on the data: facts by name, outliers.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "metric/table.hpp"
#include "report/document.hpp"
#include "report/findings.hpp"

namespace zs::report {

/// A number on which the runs of a condition agree; "-" if there is none.
/// A fraction of samples that are right is shown in per cent.
Cell fact_cell(const Condition& condition, const std::string& name);
/// A row for each fact whose name begins with `beginning`, a column per condition; nothing if there is none.
std::optional<Grid> fact_grid(const Findings& found, std::string_view beginning, const std::string& title);
/// Every outlier among similar runs; nothing if the summary has no such table.
std::optional<Grid> outlier_grid(const metric::Store& store);

}  // namespace zs::report

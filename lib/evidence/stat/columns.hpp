// SPDX-License-Identifier: Apache-2.0
// The user's additional columns: summarised like the standard ones.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/sheet.hpp"
#include "stat/condition.hpp"
#include "stat/row.hpp"

namespace zs::stat {

/// A value of a column at a step. Steps without a number are numbered from 1.
struct ColumnPoint {
  std::int64_t epoch, step;
  double value;
};

/// The column of a run, in order of steps: of the lowest rank, each step once, from its latest attempt. Empty if the
/// run does not have it. Throws Error if it is text.
std::vector<ColumnPoint> column_points(const metric::Run& run, const std::string& column);

/// Throws UsageError, with the nearest name, at a column that none of the runs has.
void require_column(const std::vector<const metric::Run*>& runs, const std::string& column);

/// NAME.first, .last, .min, .max, .mean and its 95 % interval .low and .high, for each name. For several runs first,
/// last and mean are means over the runs, and the interval follows from their spread.
void write_columns(RowWriter& row, const Condition& condition, const std::vector<std::string>& names);

/// The same for people; `names` are those given to write_columns.
Sheet columns_for_people(const metric::Table& summary, const std::vector<std::string>& names);

}  // namespace zs::stat

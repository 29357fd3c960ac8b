// SPDX-License-Identifier: Apache-2.0
// The output of zs-verify for a training: a line per step and a verdict; and its records.
#pragma once
#include <string>

#include "base/number.hpp"
#include "comparison/output.hpp"
#include "metric/table.hpp"
#include "verify/side_by_side.hpp"

namespace zs::verify {

using comparison::Lines;
using zs::to_text;  // of numbers

/// "exact", "within tolerance", "DIFFERENT" or "FAILED", and the first difference.
Lines lines(const Verdict& verdict, const SideBySide& sides, const comm::Group& group, const Request& request);

/// The heading and a line of the table of steps.
std::string header();
std::string to_text(const StepRow& row);
/// A line per unit of a step.
std::string units_text(const StepRow& row, const SideBySide& sides);

/// Adds a row to the records of a run, with the unit of its losses.
void add(metric::Table& records, const StepRow& row, const std::string& loss_unit);

}  // namespace zs::verify

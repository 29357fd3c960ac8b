// SPDX-License-Identifier: Apache-2.0
// What zs-verify prints: a line a step and a verdict, for people or for scripts; and its metric file.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/number.hpp"
#include "metric/table.hpp"
#include "verify/side_by_side.hpp"

namespace zs::verify {

/// A verdict and its details as words: "verdict", "reason", "step", "what", "stage", "parameter", ... in that order.
using Lines = std::vector<std::pair<std::string, std::string>>;

/// "exact", "within tolerance", "DIFFERENT" or "FAILED", and where it began.
Lines lines(const Verdict& verdict, const SideBySide& sides, const comm::Group& group, const Request& request);
std::string to_text(const Lines& lines);
using zs::to_text;  // of numbers

/// The heading and a line of the table of steps.
std::string header();
std::string to_text(const StepRow& row);
/// A line for each unit of a step.
std::string units_text(const StepRow& row, const SideBySide& sides);

/// The columns of two recorded runs as a table.
std::string columns_text(const metric::Table& columns);

/// Adds a row to the records of a run, whose losses are in that unit.
void add(metric::Table& records, const StepRow& row, const std::string& loss_unit);

/// One JSON object: the attributes, an array of steps, the verdict.
std::string to_json(const metric::Run& run, const Lines& verdict);

}  // namespace zs::verify

// SPDX-License-Identifier: Apache-2.0
// What zs-verify prints: a verdict and its details, for people or for scripts; and its metric file.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "metric/table.hpp"

namespace zs::comparison {

/// A verdict and its details as words: "verdict", "reason", "step", "what", "stage", "parameter", ... in that order.
using Lines = std::vector<std::pair<std::string, std::string>>;

/// Writes to stdout.
void print(const std::string& text);

/// A difference as a cell of a table: three digits, "0" of none.
std::string cell(double difference);

/// The columns of two recorded runs as a table.
std::string columns_text(const metric::Table& columns);

/// Prints the verdict and what led to it as --format says, and writes the metric file of --output. `before` is what a
/// text form begins with.
void output(const cli::Args& args, metric::Run& run, const Lines& verdict, const std::string& before);

}  // namespace zs::comparison

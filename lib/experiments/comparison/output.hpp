// SPDX-License-Identifier: Apache-2.0
// The output of zs-verify: a verdict and its details, for people or for scripts; and its metric file.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "metric/table.hpp"

namespace zs::comparison {

/// A verdict and its details: "verdict", "reason", "step", "what", "stage", "parameter", ... in that order.
using Lines = std::vector<std::pair<std::string, std::string>>;

/// The columns of two recorded runs as a table.
std::string columns_text(const metric::Table& columns);

/// Prints the verdict and its details in the form of --format, and writes the metric file of --output. A text form
/// begins with `before`.
void output(const cli::Args& args, metric::Run& run, const Lines& verdict, const std::string& before);

}  // namespace zs::comparison

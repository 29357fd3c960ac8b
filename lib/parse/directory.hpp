// SPDX-License-Identifier: Apache-2.0
// A results directory: metadata.json, experiment_log.txt and a log per condition.
#pragma once
#include <string>
#include <vector>

#include "parse/run.hpp"

namespace zs::parse {

/// A job per condition, in the order of "condition_order", with its command, exit_code and the like as attributes; also
/// for a condition whose log is missing (which is a fault) or that failed before its first step.
/// What experiment_log.txt says is added; it also serves alone, for a batch that was stopped before it wrote
/// metadata.json. Throws Error without either, or with one that cannot be read.
std::vector<Job> read_directory(const std::string& path);

}  // namespace zs::parse

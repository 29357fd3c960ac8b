// SPDX-License-Identifier: Apache-2.0
// From the operands of zs-parse to runs: which logs make which run, and in what order.
#pragma once
#include <string>
#include <vector>

#include "base/file.hpp"
#include "parse/log.hpp"

namespace zs::parse {

/// A run and the logs that it is in, in order.
struct Job {
  std::string run;
  std::vector<std::string> logs;                  ///< may be empty: then `fault` says why
  std::map<std::string, std::string> attributes;  ///< known from elsewhere
  bool of_directory = false;                      ///< a condition, which may have failed before its first line
  Fault fault{};                                  ///< reported before the logs are read, if its text is not empty
};

/// Operands as jobs: a log is a run, named after its file ("-" is "stdin"); run.log.2.gz, run.log.1, run.log are the
/// parts of one; a folder is a results directory (a run per condition). With a `name`, all logs are parts of that run.
/// Throws Error at two runs of one name, and at a folder without metadata.json.
std::vector<Job> jobs_of(const std::vector<std::string>& operands, const std::string& name);

enum class Form { tsv, h5, jsonl };

/// What was counted for each run, in order.
struct Count {
  std::string run;
  Stats stats;
};

/// Reads all jobs and writes their records to `out`.
std::vector<Count> convert(const std::vector<Job>& jobs, const Options& options, Form form, Output& out, const FaultSink& faults);

}  // namespace zs::parse

// SPDX-License-Identifier: Apache-2.0
// What people have, as runs: records and summaries, logs, the folders of runs, results, registries, W&B's and
// TensorBoard's runs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "input/named.hpp"
#include "metric/table.hpp"
#include "parse/run.hpp"

namespace zs::input {

/// Something to read: a file of records, or the logs of a run.
struct Source {
  std::string name;
  std::string metrics{};  ///< the file, "-" for standard input; "" where it has logs
  parse::Job job{};
  bool found = false;  ///< by its name, in a folder that nobody described: it may be no training's log
};

/// What has the records where there are both: "run.log" stands for the metrics.h5 beside it, standard input for
/// records, or not.
enum class Prefer { records, logs };

/// What was named as what is to be read, in the order of the operands. REQUIRES: kinds of runs.
/// Throws Error where a folder has none, or two of them have one name.
std::vector<Source> sources(const std::vector<Named>& named, Prefer prefer = Prefer::records);

/// What was named as jobs for zs-parse, with a job for each run of a file of records. With a `name`, all of it is one
/// run of that name.
std::vector<parse::Job> jobs(const std::vector<Named>& named, const std::string& name);

/// Who is told what while inputs are read.
struct Listener {
  std::function<void(std::size_t done, std::size_t all, const std::string& name)> progress{};  ///< before each input
  FaultSink fault{};                                                                           ///< defects of logs
};

/// All that was named, joined. Throws Error where one of it holds nothing, and at two runs of one name.
metric::Store read(const std::vector<Named>& named, const Listener& listener);

}  // namespace zs::input

// SPDX-License-Identifier: Apache-2.0
// Turns operands into runs: records and summaries, logs, folders of runs, results, registries, runs of W&B and
// TensorBoard.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "input/named.hpp"
#include "metric/table.hpp"
#include "parse/run.hpp"

namespace zs::input {

/// An input to read: a file of records, or the logs of a run.
struct Source {
  std::string name;
  std::string metrics{};  ///< the file, "-" for standard input; "" where it has logs
  parse::Job job{};
  std::size_t operand = 0;  ///< the index of the operand that it is of
  bool found = false;       ///< found by its name in an undescribed folder: it may be no training's log
};

/// Chooses the input if two exist: whether the metrics.h5 next to "run.log" replaces it, and whether standard input may
/// be records.
enum class Prefer { records, logs };

/// The inputs for the operands, in order. REQUIRES: kinds of runs. Throws Error if a folder has none, or two of them
/// have the same name.
std::vector<Source> sources(const std::vector<Named>& named, Prefer prefer = Prefer::records);

/// The operands as jobs for zs-parse, with a job for each run of a file of records. With a `name`, all of them form one
/// run with that name. Names are as in read().
std::vector<parse::Job> jobs(const std::vector<Named>& named, const std::string& name);

/// Callbacks while inputs are read.
struct Listener {
  std::function<void(std::size_t done, std::size_t total, const std::string& name)> progress{};  ///< before each input
  FaultSink fault{};                                                                             ///< defects of logs
};

/// All operands, read and joined. If several operands have a run of one name, each run's name begins with its
/// operand's: "monday/z1_baseline". Throws Error if one of them is empty, and at two runs with the same name in one
/// operand.
metric::Store read(const std::vector<Named>& named, const Listener& listener);

}  // namespace zs::input

// SPDX-License-Identifier: Apache-2.0
// The life of a training that a script runs: its start, its end, and the end of its experiment.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.hpp"
#include "registry/run.hpp"

namespace zs::experiment {

struct Start {
  std::vector<std::string> words;  ///< of the launcher, followed by zs-train and its words
  std::string run;                 ///< the folder of its run
  std::string log;                 ///< file for its output; "": the caller's stdout
  std::string label;               ///< "[3/6] z3_baseline, restart 1"
  std::string launch{};            ///< for another program's training, which starts its ranks itself: $ZS_LAUNCH
  std::string checkpoint{};        ///< for another program's training: the one to resume from; or ""
};

/// Prepares to start, with `launch`, the cell `name` of the experiment in `folder`, or the single run in `folder` if
/// `name` is "": with its planned words. Removes from the log of an earlier part the steps that will be repeated.
/// Throws Error if frozen files have changed, and if its Slurm job restarted more often than the experiment's
/// "max_restarts".
Start prepare(const std::string& folder, const std::string& name, const std::vector<std::string>& launch);

/// Replaces this process by the training (exec), with $ZS_RUN set. Throws Error if its launcher cannot be started.
[[noreturn]] void become(const Start& start);

/// The run in the folder $ZS_RUN: a script planned it, and this is its training, the first part or a later one. Throws
/// Error if there is no such run, or it has ended.
std::optional<registry::Run> planned_run();

/// Records the end of a cell: `fields`, with "exit_code". Adds the cell if the experiment does not have it. Returns a
/// message for people.
std::string finish(const std::string& folder, const std::string& name, const registry::Fields& fields);

/// Why a training failed by its log: the error of attribute::reason(), with its place; else the last line that
/// is not its launcher's.
std::string reason_in(const std::string& log);

/// Ends an experiment: judges its cells, writes the result into metadata.json and experiment_log.txt, and returns which
/// ones failed and how to continue them; "" if all succeeded.
std::string conclude(const std::string& folder);

}  // namespace zs::experiment

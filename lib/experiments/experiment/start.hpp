// SPDX-License-Identifier: Apache-2.0
// The life of a training that a script runs: it starts, it ends, and its experiment ends.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.hpp"
#include "registry/run.hpp"

namespace zs::experiment {

/// A training that is about to start.
struct Start {
  std::vector<std::string> words;  ///< of the launcher, and behind them zs-train's
  std::string run;                 ///< the folder of its run
  std::string log;                 ///< where it prints to; "": where the caller does
  std::string label;               ///< "[3/6] z3_baseline, restart 1"
  std::string launch{};            ///< of another's training, which starts its ranks itself: for $ZS_LAUNCH
  std::string checkpoint{};        ///< of another's training: from which it goes on; or ""
};

/// Gets ready to start, by `launch`, the cell `name` of the experiment in `folder`, or the single run in `folder` where
/// `name` is "": its words are those that it was planned with. Of what an earlier part of it has logged, what will be
/// trained again goes. Throws Error where files that were frozen have changed, and where its Slurm job has begun again
/// more often than the experiment's "max_restarts".
Start prepare(const std::string& folder, const std::string& name, const std::vector<std::string>& launch);

/// Becomes that training, with $ZS_RUN set. Throws Error where its launcher cannot be started.
[[noreturn]] void become(const Start& start);

/// The run that $ZS_RUN, its folder, names: a script has planned it, and this is its training, the first part or a
/// later one. Throws Error where there is no such run, and where it has ended.
std::optional<registry::Run> planned_run();

/// Records how a cell has ended: `fields`, with "exit_code". A cell that the experiment does not have is added. Returns
/// what to tell people.
std::string finish(const std::string& folder, const std::string& name, const registry::Fields& fields);

/// Ends an experiment: judges its cells, writes that into metadata.json and experiment_log.txt, and says which did not
/// succeed and how to go on with them; "" if all did.
std::string conclude(const std::string& folder);

}  // namespace zs::experiment

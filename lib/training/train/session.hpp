// SPDX-License-Identifier: Apache-2.0
// The frame of a training in zs-train: its group of ranks, the run's folder, its output, its end.
#pragma once
#include <optional>

#include "cli/run.hpp"
#include "experiment/lease.hpp"
#include "registry/run.hpp"
#include "setup/ranks.hpp"
#include "train/start.hpp"
#include "train/trainer.hpp"

namespace zs::train {

using setup::Ranks;

class Session {
 public:
  /// The body of zs-train.
  Status train(const cli::Args& args);
  /// The hooks of cli::run for failures: name the rank, and abort the others.
  cli::Hooks hooks() { return ranks_.hooks(); }

 private:
  Ranks ranks_;

  /// Chooses the checkpoint to resume from, as rank 0 sees it, and the number of accumulation steps. COLLECTIVE.
  void choose_checkpoint(Start& start);
  /// Rank 0's part: registers the run, trains, and keeps its log, metrics and record.
  Status record(const cli::Args& args, const Start& start, std::optional<experiment::Lease>& lease, Trainer& trainer);
};

}  // namespace zs::train

// SPDX-License-Identifier: Apache-2.0
// How a training step is divided: among ranks, in time, within sequences, and among experts.
#pragma once
#include <algorithm>
#include <cstdint>

#include "stage/stage.hpp"

namespace zs::plan {

using stage::divided_by;
using stage::Division;
using stage::is_stage;
using stage::kStages;

/// A rank's share of state that is divided among `ranks`, or not.
constexpr double share(double whole, bool divided, double ranks) { return divided ? whole / ranks : whole; }

struct Layout {
  int stage = 0;  ///< ZeRO stage 0..3
  int ranks = 1;
  int micro_steps = 1;  ///< gradient accumulation steps
  /// Ranks that have no micro-batch in the last micro-step: the micro-batches of a step do not divide evenly.
  int short_ranks = 0;
  int sequence = 1;  ///< consecutive ranks that share each micro-batch
  int chunks = 1;    ///< in which each sequence is computed, all of these ranks together
  int experts = 1;   ///< consecutive ranks that divide experts, in the units that have some

  /// Ranks, or groups of them that share micro-batches.
  int groups() const { return ranks / sequence; }
  /// Adjacent chunks of each sequence that one rank has.
  int chunks_of_rank() const { return std::max(1, chunks / sequence); }
  /// Micro-batches of a step, all ranks together.
  std::int64_t micro_batches() const { return leaves() / chunks_of_rank() / sequence; }
  /// Leaves of the summation tree: the chunks of all micro-batches of a step.
  std::int64_t leaves() const {
    return (static_cast<std::int64_t>(ranks) * micro_steps - short_ranks) * chunks_of_rank();
  }
  /// Divides this number of micro-batches of a step, at least 1, among the ranks as evenly as they can be. Ranks that
  /// divide experts have a micro-batch each, or none has one.
  void divide(std::int64_t micro_batches) {
    const int together = sequence * (micro_batches % experts == 0 ? experts : 1), holders = ranks / together;
    const std::int64_t divided = micro_batches * sequence / together;
    micro_steps = static_cast<int>((divided + holders - 1) / holders);
    short_ranks = static_cast<int>(std::int64_t{micro_steps} * holders - divided) * together;
  }
  /// The state that a rank has a share of. The micro-batch of ranks that share one is adjacent leaves of all of them,
  /// and so are the micro-batches of ranks that divide experts: they are added up at once, so that their gradients are
  /// divided in every stage.
  Division divided() const {
    Division division = divided_by(stage);
    division.gradients = division.gradients || sequence > 1 || experts > 1;
    return division;
  }
};

}  // namespace zs::plan

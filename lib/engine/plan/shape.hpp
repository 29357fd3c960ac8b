// SPDX-License-Identifier: Apache-2.0
// The input of a plan: the units of a model, and how a step of it is divided and stored.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plan/layout.hpp"
#include "plan/matrix.hpp"

namespace zs::plan {

/// A unit in plans.
struct Unit {
  std::string name;
  std::int64_t numel = 0;  ///< parameters
  int tied_to = -1;        ///< another unit whose parameters its forward also reads (a tied head), or -1
  /// float32 numbers of optimizer state, besides the parameters; -1: two per parameter, as for AdamW.
  std::int64_t kept = -1;
  /// Its update orthogonalises these as a whole: `step` brings their directions, in bfloat16, to the owners and back.
  std::vector<Matrix> matrices{};
  std::int64_t frozen = 0;  ///< of numel: never updated, without a gradient
  std::int64_t idle = 0;    ///< of numel: a token does not meet them, of the experts that it is not sent to
  /// Bytes that a forward of a micro-batch moves from chunks of tokens to blocks of heads and back, summed over the
  /// ranks of a sequence; a backward moves the same number.
  std::int64_t exchanged = 0;
  /// Number of ranks that divide its experts. All sizes above are then sizes of one rank's part. Each rank computes its
  /// experts for the micro-batches of all of these ranks. A forward exchanges `exchanged` bytes of rows between them if
  /// experts get equal numbers of tokens.
  int among = 1;
  /// Its optimizer state stays in device memory while the state of other units is offloaded (plan/offload.hpp).
  bool stays = false;
  std::int64_t float8 = 0;        ///< of numel: weights of products of 8 bits
  int float8_scales = 0;          ///< of these, each for some of them
  std::int64_t packed = 0;        ///< of numel: held in 4 bits, frozen; a unit that computes has them in full besides
  std::int64_t packed_bytes = 0;  ///< of these

  /// Elements with a gradient and an update.
  std::int64_t trained() const { return numel - frozen; }
  double kept_numbers() const { return static_cast<double>(kept < 0 ? 2 * trained() : kept); }
};

/// The input of a plan.
struct Shape : Layout {
  std::vector<Unit> units{};  ///< in forward order; the last one computes the loss
  bool activation_checkpointing = false;
  bool keeps_attention = false;  ///< with it: the results of attention stay, and are not computed again
  /// Optimizer state is in device memory only during the update, but for units of which it stays. Otherwise it stays
  /// there between steps, and a pass may move it out for a part of a step.
  bool offload_optimizer = false;
  bool offload_parameters = false;  ///< the same for shards of parameters, which gathers use too (stage 3)
  /// Stage 3 (hpZ): after its first gather in a step, a unit is partitioned again within each group of this number of
  /// consecutive ranks, and later gathers stay in the group; 0: no such groups.
  int secondary = 0;
  bool quantized_weights = false;    ///< parameters are sent as 8 bits (stage 3; not from the secondary partition)
  bool float8_gathers = false;       ///< weights of 8-bit products are sent as 8 bits (stage 3; as above)
  bool quantized_gradients = false;  ///< gradients of micro-batches are sent as 4 bits (stage 3)

  /// Whether a unit's optimizer state is away between steps.
  bool offloads(const Unit& unit) const { return offload_optimizer && !unit.stays; }
  /// The step of a unit, without units: of one whose experts are divided, the ranks with the same experts take part,
  /// each with the micro-batches of all among which it is divided as leaves.
  Shape of(const Unit& unit) const;
};

}  // namespace zs::plan

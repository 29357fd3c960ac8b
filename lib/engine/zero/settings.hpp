// SPDX-License-Identifier: Apache-2.0
// The settings of an engine: the arithmetic, the place of state, and the division of a step.
#pragma once
#include <cstdint>
#include <string>

#include "plan/pass.hpp"
#include "plan/schedule.hpp"
#include "unit/unit.hpp"
#include "zero/loss_scaler.hpp"
#include "zero/optimizer.hpp"
#include "zero/store.hpp"

namespace zs::zero {

/// The places of unused state.
struct Offload {
  Place optimizer = Place::device;   ///< optimizer state, and masters of 16-bit parameters; not with use_torch_adam
  Place parameters = Place::device;  ///< shards in stage 3
  std::string nvme_path{};           ///< folder for files on a disk
  Place passes = Place::host;        ///< where passes move state from device memory between steps
  double ratio = 1;                  ///< share of `optimizer` that is offloaded, in whole units: 0 to 1
};

/// The features of ZeRO++ in stage 3.
struct ZeroPlusPlus {
  int secondary = 0;  ///< ranks of a group that keeps a second copy of the parameters, divided among them (hpZ)
  bool quantized_weights = false, quantized_gradients = false;
  std::int64_t self_test_every = 0;  ///< steps between self-tests of quantized collectives; 0: only the first step
};

struct Settings {
  bool trains = true;  ///< false: only evaluation, without state for updates
  optimizer::Settings optimizer{};
  bool use_torch_adam = false;  ///< update with torch::optim::AdamW
  double max_grad_norm = 0;     ///< clip the global norm to this; 0 for none
  bool decay_all = true;        ///< weight decay on every parameter; false excludes biases and norms
  at::ScalarType dtype = at::kFloat;
  at::ScalarType autocast = at::kFloat;  ///< for matrix products, with float32 parameters; float32: none
  LossScaling loss_scaling{};            ///< for float16
  /// Whether the loss is scaled, and a step with a gradient that is not finite is skipped.
  bool scales() const { return dtype == at::kHalf || autocast == at::kHalf; }
  std::uint64_t seed = 1;
  Offload offload{};
  ZeroPlusPlus zeropp{};
  bool float8_gathers = false;     ///< in stage 3 weights of products of 8 bits travel as these
  unit::PackedBeginning packed{};  ///< what a file has in 4 bits; null: nothing
  unit::Beginning begin{};         ///< null: every unit's own initial values, by the seed
};

/// How a step is computed. Its ranks are the group's.
struct Strategy : plan::Layout {
  bool activation_checkpointing = false;
  bool keeps_attention = false;  ///< in addition to the inputs of units
  plan::Schedule passes{};       ///< over the plan; empty: none
  plan::Budget budget{};         ///< what they may use
  std::int64_t tokens = 0;       ///< of a micro-batch, where its sequences have chunks or experts are divided
};

}  // namespace zs::zero

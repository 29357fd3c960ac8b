// SPDX-License-Identifier: Apache-2.0
// How a model is trained: what is asked of the arithmetic, where state lies, and how a step is divided.
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

/// Where state lies that is not in use.
struct Offload {
  Place optimizer = Place::device;   ///< what it keeps, and masters beside 16-bit parameters; not with use_torch_adam
  Place parameters = Place::device;  ///< shards of stage 3
  std::string nvme_path{};           ///< folder for what is on a disk
  Place passes = Place::host;        ///< where passes move to what is in device memory between steps
};

/// What of ZeRO++ stage 3 does.
struct ZeroPlusPlus {
  int secondary = 0;  ///< ranks of a group that keeps the parameters once more, divided among them (hpZ); 0: none
  bool quantized_weights = false, quantized_gradients = false;
  std::int64_t self_test_every = 0;  ///< steps between self-tests of what travels as integers; 0: the first one alone
};

struct Settings {
  bool trains = true;  ///< false: the model is evaluated alone, and nothing is kept for updates
  optimizer::Settings optimizer{};
  bool use_torch_adam = false;  ///< update with torch::optim::AdamW itself
  double max_grad_norm = 0;     ///< clip the global norm to this; 0 for none
  bool decay_all = true;        ///< weight decay on every parameter; false leaves biases and norms out
  at::ScalarType dtype = at::kFloat;
  at::ScalarType autocast = at::kFloat;  ///< of matrix products, with float32 parameters; float32: none
  LossScaling loss_scaling{};            ///< of float16
  /// Whether the loss is scaled, and a step whose gradient is not finite skipped.
  bool scales() const { return dtype == at::kHalf || autocast == at::kHalf; }
  std::uint64_t seed = 1;
  Offload offload{};
  ZeroPlusPlus zeropp{};
  /// Only rank and micro-step counts whose sums have the same bits in every stage and on every number of ranks: powers
  /// of two. Without it any count runs, and repeats its own bits alone.
  bool exact = true;
  unit::Beginning begin{};  ///< null: every unit's own initial values, by the seed
};

/// How a step is divided among ranks and in time.
struct Strategy {
  int stage = 0;
  int micro_steps = 1;
  bool activation_checkpointing = false;
  plan::Schedule passes{};  ///< over the plan; empty: none
  plan::Budget budget{};    ///< what they may use
};

/// True if sums over so many ranks and micro-steps have the same bits in every stage and however they are spread.
bool exact_sums(int ranks, int micro_steps);

}  // namespace zs::zero

// SPDX-License-Identifier: Apache-2.0
// The operations of a plan.
#pragma once

namespace zs::plan {

/// The action of an operation on its unit. "start ... finish" pairs bracket a collective in flight.
enum class Kind {
  gather,            ///< start the all-gather of the unit's parameters
  gather_secondary,  ///< the same from the secondary partition, within the group of ranks that shares it
  gather_wait,       ///< finish either: the parameters are there
  partition,         ///< keep this rank's share of the secondary partition of the gathered parameters, until the step
  release,           ///< drop the gathered parameters, keep this rank's shard
  forward,           ///< forward of one micro-step, keeping what backward needs
  forward_no_grad,   ///< forward that keeps only its input (activation checkpointing)
  recompute,         ///< forward again from the kept input, now keeping what backward needs
  backward,          ///< backward of one micro-step into the unit's leaf gradient
  accumulate,        ///< add the present gradient to the sum over micro-steps: leaf (stages 0, 1), reduced shard (2, 3)
  reduce,            ///< start the reduce-scatter of the gradient
  reduce_wait,       ///< finish it
  gather_grad,       ///< start the all-gather of the reduced gradient (stage 0: with reduce it is an all-reduce)
  gather_grad_wait,
  norm,        ///< global gradient norm, clipping factor, overflow verdict; no unit
  step,        ///< optimizer update of this rank's part of the unit
  load,        ///< start to load the unit's offloaded optimizer state; step waits for it
  store,       ///< start to store it
  load_shard,  ///< start to load this rank's shard of the parameters; gather waits for it and drops it, step changes it
  store_shard,  ///< start to store the shard
  load_input,   ///< start to load the input for recompute, which waits for it
  store_input,  ///< start to store the kept input of a micro-step's forward
};

struct Op {
  Kind kind{};
  int unit = -1;   ///< index into Shape::units, -1 for norm
  int micro = -1;  ///< micro-step 0..A-1, or -1
  /// For a gather: it starts together with the next operation, also a gather, as one collective (coalesced).
  bool with_next = false;
  bool operator==(const Op&) const = default;
};

}  // namespace zs::plan

// SPDX-License-Identifier: Apache-2.0
// A difference and its place, for the negative answer of zs-verify.
#pragma once
#include <cstdint>

#include "compare/measure.hpp"
#include "plan/plan.hpp"

namespace zs::verify {

using compare::decimal;
using compare::Difference;
using compare::hexadecimal;
using compare::kNoDistance;
using compare::Tolerance;
using compare::ulp_distance;

/// The phases of a training step in temporal order; a difference belongs to the first phase that shows it. Local
/// accumulation precedes the reduction in ZeRO stages 0 and 1, and follows it, on the shard, in 2 and 3.
enum class Phase : std::int32_t {
  initialisation,
  gathered,
  forward,
  backward,
  accumulation,
  reduction,
  shard_accumulation,
  clipping,
  optimizer,
  gather
};
const char* name(Phase phase);
/// The phase that produces gradients: if they are sharded, each micro-step is reduced, and the sum comes last.
Phase last_of_gradient(const plan::Shape& shape);

enum class What : std::int32_t { loss, gradient, norm, clipped_norm, loss_scale, parameter, output };
const char* name(What what);

/// One pair of different numbers. Plain data, so that ranks can exchange it.
struct Finding {
  bool found = false;
  Phase phase{};
  What what{};
  std::int32_t unit = -1, parameter = -1;  ///< -1 if it belongs to no parameter
  std::int64_t index = -1;                 ///< element within the parameter
  std::int64_t leaf = -1;                  ///< micro-batch of the step, if it belongs to one
  std::int32_t rank = -1;
  std::int64_t order = 0;  ///< of the comparison within the step
  double target = 0, reference = 0;
  std::int64_t ulp = 0;

  /// Whether it is earlier in the step.
  bool before(const Finding& other) const;
};

}  // namespace zs::verify

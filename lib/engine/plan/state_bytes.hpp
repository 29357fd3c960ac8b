// SPDX-License-Identifier: Apache-2.0
// The sizes of a model's state on a rank.
#pragma once

#include "plan/shape.hpp"

namespace zs::plan {

/// Bytes of model state that each rank keeps in device memory (Rajbhandari et al. 2020, table 1): parameters and
/// gradients in their type, and in float32 the optimizer's `kept` numbers (-1: two per parameter, AdamW's moments) and,
/// for 16-bit parameters, the masters. Each is divided from its stage on. Offloaded state is not counted: optimizer
/// state, and the shards of parameters in stage 3. If `secondary` ranks keep stage 3's parameters again, these count.
/// The `frozen` ones of the parameters have no gradients, masters and optimizer state.
double state_bytes(const Shape& shape, int bytes_per_parameter);
/// The same of `parameters` in one.
double state_bytes(double parameters, int stage, double ranks, int bytes_per_parameter, bool offload_optimizer = false,
                   bool offload_parameters = false, int secondary = 0, double kept = -1, double frozen = 0);
/// Bytes of a unit's parameters as they are held, and sent by gathers.
double held_bytes(const Unit& unit, int bytes_per_parameter);
/// Bytes in which a rank has the matrices of the unit that computes in full, if units hold them in 4 bits.
double workspace_bytes(const Shape& shape, int bytes_per_parameter);
/// Sums over all units: parameters, frozen parameters, and the numbers that the optimizer keeps for them.
double numel(const Shape& shape);
double frozen(const Shape& shape);
/// The trained parameters.
double trained(const Shape& shape);
double kept_numbers(const Shape& shape);

}  // namespace zs::plan

// SPDX-License-Identifier: Apache-2.0
// The passes that move out of device memory, for a part of a step, what is in it between steps or between a forward and
// its backward. With a profile only as much as it takes for the predicted peak to fit the budget; without one, all.
#pragma once
#include "plan/pass.hpp"

namespace zs::plan {

/// Optimizer state is away while units compute. Each unit's begins to come back as soon as memory allows.
Plan offload_adam_states(const Plan& plan, const Budget& budget);
/// The same of every unit's, whatever was measured; each comes back right before its update.
Plan offload_adam_states_sync(const Plan& plan, const Budget& budget);
/// Shards of stage 3 leave behind their first gather in a step, and come back for each later one and for the update.
Plan offload_parameters(const Plan& plan, const Budget& budget);
/// Inputs that activation checkpointing keeps are away between a unit's forward and the backward behind it.
Plan offload_activation(const Plan& plan, const Budget& budget);

}  // namespace zs::plan

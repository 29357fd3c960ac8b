// SPDX-License-Identifier: Apache-2.0
// Passes that move data out of device memory for a part of a step: state between steps, or inputs between a forward and
// its backward. With a profile only as much as needed for the predicted peak to fit the budget; without one, all.
#pragma once
#include "plan/pass.hpp"

namespace zs::plan {

/// Optimizer state is moved out while units compute. Each unit's begins to load as soon as memory allows.
Plan offload_adam_states(const Plan& plan, const Budget& budget);
/// The same for every unit, regardless of measurements; each loads right before its update.
Plan offload_adam_states_sync(const Plan& plan, const Budget& budget);
/// Shards of stage 3 are moved out after their first gather in a step, and load for each later one and for the update.
Plan offload_parameters(const Plan& plan, const Budget& budget);
/// Inputs kept by activation checkpointing are moved out between a unit's forward and its backward.
Plan offload_activation(const Plan& plan, const Budget& budget);

}  // namespace zs::plan

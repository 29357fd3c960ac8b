// SPDX-License-Identifier: Apache-2.0
// Passes that move data out of device memory for a part of a step: state between steps, or inputs between a forward and
// its backward. With a profile only as much as needed for the predicted peak to fit the budget; without one, all.
#pragma once
#include "plan/pass.hpp"
#include "plan/plan.hpp"

namespace zs::plan {

/// Optimizer state is moved out while units compute. Each unit's begins to load as soon as memory allows.
Plan offload_adam_states(const Plan& plan, const Budget& budget);
/// The same for every unit, regardless of measurements; each loads right before its update.
Plan offload_adam_states_sync(const Plan& plan, const Budget& budget);
/// Shards of stage 3 are moved out after their first gather in a step, and load for each later one and for the update.
Plan offload_parameters(const Plan& plan, const Budget& budget);
/// Inputs kept by activation checkpointing are moved out between a unit's forward and its backward.
Plan offload_activation(const Plan& plan, const Budget& budget);

// Chooses the units whose optimizer state is offloaded if a share of the state stays in device memory (ZeRO-Offload++'s
// Twin-Flow). Units are whole. Units that stay are distributed evenly among the others in the order of the updates:
//
//   updates of a step, share 0.6     away  stays  away  stays  away  away  stays  away  stays  away
//
// So both directions of the bus are busy from the norm on. If the units that stay came first, no state would be stored
// during their updates; if they came last, the next step's forward would wait for them after the last load. An update
// in device memory takes a small part of the time of a transfer: here it runs while the next unit's state is loaded.

/// Sets which units' optimizer state stays in device memory where it is offloaded, so that the others have `ratio` of
/// all trained elements. In the order of the updates each unit goes to the side that keeps their share so far nearest
/// to `ratio`: after each the share is off by at most half of the largest unit so far. 0: all stay; 1: none.
/// It depends on units alone: stage, ranks and passes change nothing.
void offload_share(Shape& shape, double ratio);

/// The share of the trained elements whose optimizer state is offloaded: 0 if none is.
double offloaded_share(const Shape& shape);

}  // namespace zs::plan

// SPDX-License-Identifier: Apache-2.0
// Chooses the units whose optimizer state is offloaded if a share of the state stays in device memory (ZeRO-Offload++'s
// Twin-Flow). Units are whole. Units that stay are distributed evenly among the others in the order of the updates:
//
//   updates of a step, share 0.6     away  stays  away  stays  away  away  stays  away  stays  away
//
// So both directions of the bus are busy from the norm on. If the units that stay came first, no state would be stored
// during their updates; if they came last, the next step's forward would wait for them after the last load. An update
// in device memory takes a small part of the time of a transfer: here it runs while the next unit's state is loaded.
#pragma once
#include "plan/plan.hpp"

namespace zs::plan {

/// Sets which units' optimizer state stays in device memory where it is offloaded, so that the others have `ratio` of
/// all trained elements. In the order of the updates each unit goes to the side that keeps their share so far nearest
/// to `ratio`: after each the share is off by at most half of the largest unit so far. 0: all stay; 1: none.
/// It depends on units alone: stage, ranks and passes change nothing.
void offload_share(Shape& shape, double ratio);

/// The share of the trained elements whose optimizer state is offloaded: 0 if none is.
double offloaded_share(const Shape& shape);

}  // namespace zs::plan

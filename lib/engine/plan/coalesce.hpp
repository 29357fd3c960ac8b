// SPDX-License-Identifier: Apache-2.0
// Joins small gathers into one collective: alone, their cost is mostly latency.
#pragma once
#include "plan/pass.hpp"

namespace zs::plan {

/// The plan with adjacent gathers started together if the profile predicts that together they take less than 1.2 times
/// the longest of them, and they are less than 1 GB (DeepCompile's bounds); within the budget. Unchanged without a
/// profile.
Plan coalesced(const Plan& plan, const Budget& budget);

}  // namespace zs::plan

// SPDX-License-Identifier: Apache-2.0
// Small gathers as one collective: what they cost alone is mostly its beginning.
#pragma once
#include "plan/pass.hpp"

namespace zs::plan {

/// The plan with neighbouring gathers begun together, where the profile predicts that together they take less than
/// 1.2 times the longest of them, and they are less than 1 GB (DeepCompile's bounds); within the budget. Without a
/// profile, as it is.
Plan coalesced(const Plan& plan, const Budget& budget);

}  // namespace zs::plan

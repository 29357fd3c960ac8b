// SPDX-License-Identifier: Apache-2.0
// Describes what a pass changed in a plan, for people.
#pragma once
#include <string>

#include "plan/pass.hpp"

namespace zs::plan {

/// "prefetch: collectives 40 -> 34, beside computation 0 -> 20; predicted step 0.0121 -> 0.0104 s, peak 45.2 -> 45.9
/// MiB"; the prediction needs a profile.
std::string effect(const std::string& pass, const Plan& before, const Plan& after, const Budget& budget);

}  // namespace zs::plan

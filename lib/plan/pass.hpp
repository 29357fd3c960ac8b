// SPDX-License-Identifier: Apache-2.0
// Passes: pure functions from plan to plan that change when bytes move, never what is computed.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace zs::plan {

/// What was measured of the units, one entry a unit; an empty vector where it was not.
struct Profile {
  std::vector<double> gather_seconds;
};

/// What a plan may use.
struct Budget {
  std::int64_t gathered_elements = 1'000'000'000;  ///< most parameters gathered at one time (stage 3)
};

/// A pass and its contract: conditions are words; a pass that `requires_` one must run after a pass that
/// provides it, one that `conflicts` with it must run before.
struct Pass {
  std::string name, purpose;
  std::vector<std::string> provides, requires_, conflicts;
  std::function<Plan(const Plan&, const Profile&, const Budget&)> run;
};

/// All passes, in the order in which --deepcompile runs them.
const std::vector<Pass>& passes();

/// The names of passes().
std::vector<std::string> pass_names();

/// Runs the named passes in the given order; throws zs::Error at an unknown name, at one named twice, at a broken
/// contract (with the order that would do), and where the result does not pass check().
Plan compile(const Plan& plan, const std::vector<std::string>& names, const Profile& profile, const Budget& budget);

}  // namespace zs::plan

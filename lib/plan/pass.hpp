// SPDX-License-Identifier: Apache-2.0
// Passes: pure functions from plan to plan that change when bytes move, never what is computed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace zs::plan {

struct Profile;

/// What a plan may use, and what is known of its operations.
struct Budget {
  std::int64_t gathered_elements = 1'000'000'000;  ///< most parameters gathered at one time (stage 3)
  std::shared_ptr<const Profile> profile{};        ///< null: nothing was measured
};

/// A pass and its contract: conditions are words; a pass that `conflicts` with one must run before a pass that provides
/// it.
struct Pass {
  std::string name, purpose;
  std::vector<std::string> provides, conflicts;
  std::function<Plan(const Plan&, const Budget&)> run;
};

/// All passes, in the order in which --deepcompile runs them.
const std::vector<Pass>& passes();

/// The names of passes().
std::vector<std::string> pass_names();

/// Runs the named passes in the given order; throws zs::Error at an unknown name, at one named twice, at a broken
/// contract (with the order that would do), and where the result does not pass check().
Plan compile(const Plan& plan, const std::vector<std::string>& names, const Budget& budget);

}  // namespace zs::plan

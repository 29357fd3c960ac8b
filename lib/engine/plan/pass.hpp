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
  double memory = 0;                               ///< bytes of device memory that a rank may fill; 0: not known
};

/// A pass and its contract: conditions are words; a pass that `conflicts` with one must run before a pass that provides
/// it, and not at all beside one of its like.
struct Pass {
  std::string name, purpose;
  std::vector<std::string> provides, conflicts;
  std::function<Plan(const Plan&, const Budget&)> run;
  bool usual = true;  ///< it costs nothing where memory suffices: --deepcompile runs it
};

/// All passes, in the order in which they can run.
const std::vector<Pass>& passes();

/// The names of passes(), and of those that --deepcompile runs where none is named.
std::vector<std::string> pass_names();
std::vector<std::string> usual_passes();
/// Those that hide communication and keep nothing longer than one computation: they run without --deepcompile too where
/// GPUs communicate.
std::vector<std::string> free_passes();

/// Runs the named passes in the given order, and says in the plan what each did; throws zs::Error at an unknown name,
/// at one named twice, at a broken contract (with the order that would do), and where the result does not pass check().
Plan compile(const Plan& plan, const std::vector<std::string>& names, const Budget& budget);

}  // namespace zs::plan

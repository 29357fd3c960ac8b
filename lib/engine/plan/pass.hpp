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

/// The resources that a plan may use, and measurements of its operations.
struct Budget {
  std::int64_t gathered_elements = 1'000'000'000;  ///< maximum of parameters gathered at one time (stage 3)
  std::shared_ptr<const Profile> profile{};        ///< null: no measurements
  double memory = 0;                               ///< limit for bytes of device memory of a rank; 0: unknown
};

/// A pass and its contract: the condition of plans that it provides and the one that it conflicts with, "" for none. It
/// must run before a pass that provides the latter, and cannot run together with another such pass.
struct Pass {
  std::string name, purpose;
  std::string provides, conflicts;
  std::function<Plan(const Plan&, const Budget&)> run;
  bool usual = true;  ///< free of cost if memory suffices: --deepcompile runs it
};

/// All passes, in the order in which they can run.
const std::vector<Pass>& passes();

/// The names of passes(), and of those that --deepcompile runs by default.
std::vector<std::string> pass_names();
std::vector<std::string> usual_passes();
/// The passes that hide communication and keep nothing longer than one computation: they also run without --deepcompile
/// if GPUs communicate.
std::vector<std::string> free_passes();

/// Runs the named passes in the given order, and records in the plan the effect of each; throws zs::Error at an unknown
/// or repeated name, at a broken contract (with an order that works), and if the result does not pass check().
Plan compile(const Plan& plan, const std::vector<std::string>& names, const Budget& budget);

/// The plan with adjacent gathers started together if the profile predicts that together they take less than 1.2 times
/// the longest of them, and they are less than 1 GB (DeepCompile's bounds); within the budget. Unchanged without a
/// profile.
Plan coalesced(const Plan& plan, const Budget& budget);

}  // namespace zs::plan

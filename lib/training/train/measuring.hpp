// SPDX-License-Identifier: Apache-2.0
// Measures the operations of the first steps, for plans and predictions of the steps to come: profile.json in the run's
// folder.
#pragma once
#include <string>

#include "model/model.hpp"
#include "plan/profile.hpp"
#include "setup/settings.hpp"

namespace zs::train {

using setup::Settings;

class Measuring {
 public:
  /// Of a training that begins behind step `done`. Measures where passes are asked for by --deepcompile, or from a
  /// later step on, and no profile is given. All outlive it.
  Measuring(comm::Group& group, zero::Engine& engine, const Settings& settings, const model::Model& model,
            std::int64_t done);
  /// Before a step. COLLECTIVE.
  void before(std::int64_t step);
  /// After it, which took so long. After the last step that is measured the ranks join what they saw, rank 0 writes it
  /// into `folder`, and the engine makes the plans to come by it; true then. COLLECTIVE.
  bool after(std::int64_t step, double seconds, const std::string& folder);

 private:
  static constexpr std::int64_t kSteps = 2;  // behind the first, which takes memory that later ones find
  comm::Group& group_;
  zero::Engine& engine_;
  const Settings& settings_;
  const model::Model& model_;
  std::int64_t first_;  // step to measure; 0: none
  plan::Timings timings_;

  bool measures(std::int64_t step) const { return first_ > 0 && step >= first_ && step < first_ + kSteps; }
};

}  // namespace zs::train

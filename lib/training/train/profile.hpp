// SPDX-License-Identifier: Apache-2.0
// Profiles some steps with PyTorch's profiler into a file per rank, for Perfetto, TensorBoard, Holistic Trace Analysis
// and zs-trace.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "comm/group.hpp"
#include "model/model.hpp"
#include "plan/profile.hpp"
#include "setup/profiled_steps.hpp"
#include "setup/settings.hpp"

namespace zs::train {

using setup::ProfiledSteps;

class Profile {
 public:
  /// Profiles `steps` of this rank into FOLDER/rank-R.pt.trace.json.gz; rank 0's folder counts. COLLECTIVE.
  Profile(comm::Group& group, const ProfiledSteps& steps, const std::string& folder);
  ~Profile();

  /// Call them before and after each step: the file is written after the last one.
  void begin(std::int64_t step);
  void end(std::int64_t step);
  /// Writes the file if the training ends early.
  void finish();
  /// Whether the step is profiled, and so slower.
  bool has(std::int64_t step) const { return step >= steps_.first && step <= steps_.last; }

 private:
  struct Step;
  comm::Group& group_;
  ProfiledSteps steps_;
  std::string path_;
  bool running_ = false;
  std::unique_ptr<Step> step_;

  void start();
};

// Measures the operations of the first steps, for plans and predictions of later steps: profile.json in the run's
// folder.

using setup::Settings;

class Measuring {
 public:
  /// For a training that begins after step `done`. Measures if --deepcompile asks for passes, or passes start at a
  /// later step, and no profile is given. All arguments must outlive it.
  Measuring(comm::Group& group, zero::Engine& engine, const Settings& settings, const model::Model& model,
            std::int64_t done);
  /// Call it before a step. COLLECTIVE.
  void before(std::int64_t step);
  /// Call it after the step, which took `seconds`. After the last measured step the ranks join their measurements, rank
  /// 0 writes them into `folder`, and the engine makes the next plans from them; then returns true. COLLECTIVE.
  bool after(std::int64_t step, double seconds, const std::string& folder);

 private:
  static constexpr std::int64_t kSteps = 2;  // after the first, which allocates memory for later ones
  comm::Group& group_;
  zero::Engine& engine_;
  const Settings& settings_;
  const model::Model& model_;
  std::int64_t first_;  // the first step to measure; 0: none
  plan::Timings timings_;

  bool measures(std::int64_t step) const { return first_ > 0 && step >= first_ && step < first_ + kSteps; }
};

}  // namespace zs::train

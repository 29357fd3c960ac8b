// SPDX-License-Identifier: Apache-2.0
// Records a training as share/probe/zs_probe does for PyTorch: each gradient as the optimizer gets it and each
// parameter after the update, on each rank the parts that it owns. zs-verify compares two recordings.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "setup/settings.hpp"
#include "tracker/probe.hpp"
#include "zero/engine.hpp"

namespace zs::train {

using setup::Settings;

class Probing {
 public:
  /// Creates the files if settings.probe names a folder. All arguments must outlive it. `done`: number of earlier steps
  /// of the training. COLLECTIVE.
  Probing(comm::Group& group, zero::Engine& engine, const Settings& settings, std::int64_t done);

  /// Call it with each micro-batch of a step.
  void batch(std::int64_t step, const unit::Batch& batch);
  /// Call it while a step's gradient sums exist. COLLECTIVE.
  void gradients(std::int64_t step);
  /// Call it after the step.
  void after(std::int64_t step, const zero::StepResult& result);
  /// Call it after the last of `steps` steps.
  void finish(std::int64_t steps);

 private:
  zero::Engine& engine_;
  const Settings& settings_;
  std::string folder_;
  std::unique_ptr<tracker::ProbeWriter> writer_;  // null if nothing is recorded
  std::vector<at::Tensor> gradients_;             // of this step by unit, or none
  std::vector<std::int64_t> targets_;             // of this step by micro-batch: those that the loss counts

  std::deque<std::vector<float>> joined_;  // of this step: tensors of several parameters

  bool keeps_values(std::int64_t step) const;
  bool due(std::int64_t step) const { return writer_ && (step == 1 || step % settings_.probe_every == 0); }
  /// The parameters of a unit that are trained, or the others, from elements `slice` of its flat buffer.
  void add(const char* kind, std::size_t unit, const at::Tensor& owned, comm::Slice slice, bool trained,
           std::vector<tracker::ProbedPart>& parts);
  void write(std::int64_t step, double loss, const std::vector<tracker::ProbedPart>& parts);
};

}  // namespace zs::train

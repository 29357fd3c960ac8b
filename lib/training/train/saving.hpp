// SPDX-License-Identifier: Apache-2.0
// Decides when a training saves, and from which checkpoint it may resume.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.hpp"
#include "model/model.hpp"
#include "setup/settings.hpp"

namespace zs::train {

using setup::Settings;

/// Saves the checkpoints of one training. All calls are COLLECTIVE.
class Saving {
 public:
  /// `folder` is the run's folder, as rank 0 gives it.
  Saving(comm::Group& group, zero::Engine& engine, const Settings& settings, const model::Model& model,
         const std::string& folder);

  /// Whether a checkpoint is due after a step.
  bool due(std::int64_t step, bool last) const {
    return (last && settings_.save_final) || (settings_.save_steps > 0 && step % settings_.save_steps == 0);
  }
  /// Call it before a step: arranges that its gradients are written if a checkpoint is due after it, or a signal asks
  /// for one. Also calls leaf() and reduced() of `seen`.
  void before(std::int64_t step, std::int64_t steps, zero::Observer seen = {});
  /// Call it after a step: whether a rank was asked to stop (StepResult::stop).
  void step_ended(bool stop) { stopping_ = stopping_ || stop; }
  /// Whether a signal on any rank asked to save and stop, by the end of the last step; if gradients are saved, by the
  /// time they were complete.
  bool stopping() const { return stopping_; }
  /// Call it after a step: completes the checkpoint that is due, or that a signal asked for.
  void after(const checkpoint::Progress& progress, bool last);

 private:
  comm::Group& group_;
  zero::Engine& engine_;
  Settings settings_;
  std::string folder_, model_folder_;
  checkpoint::ModelFiles files_;
  std::optional<checkpoints::Form> other_;  // of each checkpoint
  std::unique_ptr<checkpoint::Writer> writer_;
  std::optional<checkpoint::MicroBatchNorms> norms_;  // of the current step, if they are saved
  bool stopping_ = false;

  void write_gradients(std::int64_t step, bool last);
  std::string name(std::int64_t step, bool last) const;
};

/// Throws zs::Error, with the remedy, if a training with these settings on `ranks` ranks cannot resume from `progress`.
void require_same(const checkpoint::Progress& progress, const Settings& settings, int ranks,
                  const std::string& dataset_sha256);

}  // namespace zs::train

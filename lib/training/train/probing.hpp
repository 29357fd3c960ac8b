// SPDX-License-Identifier: Apache-2.0
// Records a training as share/probe/zs_probe does for PyTorch, on each rank the parts that it owns: gradients as the
// optimizer gets them, its state and the parameters after the update. On processors, where sequences are whole, also
// each micro-batch's gradient: a GPU would have to copy it. zs-verify compares two recordings. Steps are those of the
// optimizer, as in zs_probe: a step that loss scaling skips is not recorded.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "probefile/measure.hpp"
#include "probefile/writer.hpp"
#include "setup/settings.hpp"
#include "zero/engine.hpp"

namespace zs::train {

using setup::Settings;

class Probing {
 public:
  /// Creates the files if settings.probe names a folder, and moves the parameters if settings.probe_perturb says so.
  /// All arguments must outlive it. COLLECTIVE.
  Probing(comm::Group& group, zero::Engine& engine, const Settings& settings);

  /// Call it with each leaf of a step, and the micro-batch that it is of.
  void batch(std::int64_t leaf, const unit::Batch& whole);
  /// Whether leaf() records anything of the next step.
  bool sees_leaves() const {
    return due() && settings_.chunks == 1 && group_.device().kind == device::Device::Kind::cpu;
  }
  /// Call it when a micro-batch's gradient of a unit is there.
  void leaf(int unit, int micro);
  /// Call it while a step's gradient sums exist. COLLECTIVE.
  void gradients();
  /// Call it after the step. COLLECTIVE.
  void after(const zero::StepResult& result, double learning_rate);
  /// Call it after the last step: a signal has stopped it, or it is not finite. COLLECTIVE.
  void finish(bool stopped, const std::string& diverged);
  /// Call it where an error has ended the training.
  void failed(const std::string& error) noexcept;

 private:
  using PlaceOf = std::function<std::optional<std::string>(const unit::Parameter& parameter)>;
  using Values = std::function<std::string_view(const unit::Parameter& parameter, std::int64_t begin)>;

  comm::Group& group_;
  zero::Engine& engine_;
  const Settings& settings_;
  std::string folder_;
  std::unique_ptr<probefile::Writer> writer_;  // null if nothing is recorded
  bool ended_ = false;
  std::int64_t written_ = 0;  // the last step that is recorded

  // The current step:
  std::vector<at::Tensor> gradients_;  // by unit, or none
  std::string locals_;                 // as probefile::rows() makes them
  std::vector<std::vector<std::uint64_t>> batch_;
  std::vector<std::int64_t> targets_;
  std::deque<std::string> joined_;     // values of tensors of several parameters
  std::vector<at::Tensor> held_;       // what kept_ is of
  std::vector<probefile::Held> kept_;  // whose values are kept

  /// The step under way, and whether it is recorded.
  std::int64_t next() const { return engine_.updates() + 1; }
  bool due() const { return writer_ && (next() == 1 || next() % settings_.probe_every == 0); }
  bool keeps_values(std::int64_t step) const;
  void clear();
  void perturb(std::uint64_t seed);
  /// The tensors of a unit, under the prefixes that `place` gives (none: not that tensor), from elements `slice` of its
  /// flat buffer. `values` gives the bytes of a parameter from its unit's element `begin` on.
  std::vector<probefile::Held> parts(std::size_t unit, comm::Slice slice, const PlaceOf& place, const Values& values,
                                     tensorfile::Dtype dtype = tensorfile::Dtype::f32);
  std::vector<probefile::Held> parameters(std::size_t unit, std::vector<probefile::Held>& computing);
  std::vector<probefile::Held> states(std::size_t unit);
  /// Adds rows to a list, and keeps the parts if this step's values are kept.
  void add(std::string& rows, std::vector<probefile::Held> parts, bool keeps);
  std::string write_values(std::int64_t step);
};

}  // namespace zs::train

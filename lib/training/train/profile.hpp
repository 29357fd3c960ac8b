// SPDX-License-Identifier: Apache-2.0
// Profiles some steps with PyTorch's profiler into a file per rank, for Perfetto, TensorBoard, Holistic Trace Analysis
// and zs-trace.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "comm/group.hpp"
#include "setup/profiled_steps.hpp"

namespace zs::train {

using setup::ProfiledSteps;

class Profile {
 public:
  /// Profiles `steps` of this rank into FOLDER/rank-R.pt.trace.json.gz; rank 0's folder counts. COLLECTIVE.
  Profile(comm::Group& group, const ProfiledSteps& steps, const std::string& folder);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

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

}  // namespace zs::train

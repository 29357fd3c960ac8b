// SPDX-License-Identifier: Apache-2.0
// A profile of some steps: what PyTorch's profiler sees of them, in a file for each rank that Perfetto, TensorBoard,
// Holistic Trace Analysis and zs-trace read.
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

  /// In front of each step, and behind it: the file is written behind the last one.
  void begin(std::int64_t step);
  void end(std::int64_t step);
  /// Writes what there is, where the training ends before the last one.
  void finish();
  /// Whether the step is profiled: it takes longer.
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

// SPDX-License-Identifier: Apache-2.0
// The process of a tool that runs on many ranks: how it starts, and how it fails.
#pragma once
#include <memory>

#include "cli/run.hpp"
#include "comm/group.hpp"

namespace zs::train {

class Ranks {
 public:
  /// Sets LibTorch up (memory counted, OMP_NUM_THREADS or one thread) and joins the ranks that the launcher started.
  /// `timeout`: seconds that a collective waits. The group lives as long as this. Call once, before the first tensor.
  comm::Group& start(double timeout);
  comm::Group& group() { return *group_; }  ///< REQUIRES: start()
  /// What cli::run does at a failure: says which rank it is, and aborts the others.
  cli::Hooks hooks();

 private:
  std::unique_ptr<comm::Group> group_;
};

}  // namespace zs::train

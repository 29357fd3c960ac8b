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
  /// `timeout`: seconds that a collective waits. `device` is auto, cpu or cuda: the GPU of this rank among those of its
  /// host; `transport` is auto, nccl or mpi: what moves a GPU's memory. The group lives as long as this. Throws zs::Error
  /// where this build or machine has no GPU and one is asked for. Call once, before the first tensor. COLLECTIVE.
  comm::Group& start(double timeout, const std::string& device = "cpu", const std::string& transport = "auto");
  comm::Group& group() { return *group_; }  ///< REQUIRES: start()
  /// What cli::run does at a failure: says which rank it is, and aborts the others.
  cli::Hooks hooks();

 private:
  std::unique_ptr<comm::Group> group_;
};


}  // namespace zs::train

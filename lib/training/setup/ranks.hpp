// SPDX-License-Identifier: Apache-2.0
// The process of a tool that runs on many ranks: how it starts, and how it fails.
#pragma once
#include <memory>
#include <string>

#include "cli/run.hpp"
#include "comm/group.hpp"

namespace zs::setup {

class Ranks {
 public:
  /// Sets LibTorch up (memory counted, OMP_NUM_THREADS or one thread) and joins the ranks that the launcher started, on
  /// the host. `timeout`: seconds that a collective waits. The group lives as long as this. Call once, before the first
  /// tensor.
  comm::Group& start(double timeout);
  /// Moves the group to chosen_device(), the same on every rank: the GPU of this rank among those of its host.
  /// `transport` is auto, nccl or mpi: what moves a GPU's memory. Earlier references end. Call at most once.
  /// COLLECTIVE.
  comm::Group& use(const std::string& device, const std::string& transport);
  comm::Group& group() { return *group_; }  ///< REQUIRES: start()
  /// What cli::run does at a failure: says which rank it is, and aborts the others.
  cli::Hooks hooks();

 private:
  comm::Options options_;
  std::unique_ptr<comm::Group> group_;
};

/// "cpu" or "cuda", of auto, cpu or cuda: auto takes a GPU where there is one. Throws zs::Error where one is asked for,
/// or was given to this job, and cannot be used.
std::string chosen_device(const std::string& asked);

/// A warning where a job's GPUs will be idle though nobody asked for processors, or "".
std::string idle_gpus(const std::string& asked);

}  // namespace zs::setup

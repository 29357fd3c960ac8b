// SPDX-License-Identifier: Apache-2.0
// The process of a tool that runs on many ranks: its start, and its failure.
#pragma once
#include <memory>
#include <string>

#include "cli/run.hpp"
#include "comm/group.hpp"

namespace zs::setup {

class Ranks {
 public:
  /// Initializes LibTorch (memory accounting, OMP_NUM_THREADS or one thread) and joins the ranks that the launcher
  /// started, with host memory. `timeout`: seconds that a collective waits. The group lives as long as this object.
  /// Call it before the first tensor; later calls return the group.
  comm::Group& start(double timeout);
  /// Moves the group to chosen_device() of auto, cpu or cuda, the same on every rank: the GPU of this rank among those
  /// of its host.
  /// `transport` is auto, nccl or mpi: how a GPU's memory is sent. Unless bits must `repeat`, NCCL may add gradients in
  /// any order. Invalidates earlier references. Later calls keep the GPU. COLLECTIVE.
  comm::Group& use(const std::string& device, const std::string& transport, bool repeat);
  comm::Group& group() { return *group_; }  ///< REQUIRES: start()
  /// The hooks of cli::run for failures: name the rank, and abort the others.
  cli::Hooks hooks();

 private:
  comm::Options options_;
  std::unique_ptr<comm::Group> group_;
};

/// "cpu" or "cuda", from auto, cpu or cuda: auto takes a GPU if there is one. Throws zs::Error if one was requested, or
/// was given to this job, but cannot be used.
std::string chosen_device(const std::string& asked);

/// A warning if a job's GPUs will be idle although the user did not ask for the CPU, or "".
std::string idle_gpus(const std::string& asked);

}  // namespace zs::setup

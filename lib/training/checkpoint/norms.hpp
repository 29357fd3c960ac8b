// SPDX-License-Identifier: Apache-2.0
// The gradient norm of each micro-batch of a step, per parameter: with the mean gradient it shows how much the
// micro-batches differ.
#pragma once
#include <vector>

#include "comm/group.hpp"
#include "zero/engine.hpp"

namespace zs::checkpoint {

/// The L2 norms of one step's leaf gradients.
class MicroBatchNorms {
 public:
  MicroBatchNorms(comm::Group& group, zero::Engine& engine);

  /// For zero::Observer::leaf.
  void add(int unit, int micro);
  /// Per trained tensor of files (unit::tensors), in the units' order, and global leaf: the norm of the gradient of
  /// that micro-batch's loss, without the loss scale. The mean of these gradients over the leaves is the step's
  /// gradient. COLLECTIVE.
  std::vector<std::vector<double>> gathered();

 private:
  comm::Group& group_;
  zero::Engine& engine_;
  std::vector<std::size_t> first_;  // by unit: its first tensor
  std::size_t tensors_ = 0;
  std::vector<double> own_;  // micro-step by micro-step, by tensor
};

}  // namespace zs::checkpoint

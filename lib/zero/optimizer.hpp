// SPDX-License-Identifier: Apache-2.0
// The optimizer of one unit's owned part and its state, float32: the master parameters and Adam's two moments. The
// update is zs's one-pass AdamW, or LibTorch's class itself.
#pragma once
#include <memory>
#include <vector>

#include "comm/group.hpp"
#include "device/memory.hpp"
#include "unit/unit.hpp"
#include "zero/adamw.hpp"

namespace zs::zero {

/// What one update takes besides the gradient sum.
struct Update {
  double learning_rate = 0;
  std::int64_t number = 1;  ///< counts from 1, skipped steps left out
  float scale = 1;          ///< the gradient is sum * scale * clip
  float clip = 1;
};

/// A run of elements with one weight decay: [begin, end) of the owned part.
struct Segment {
  std::int64_t begin = 0, end = 0;
  bool decay = true;
};
/// The owned part of a unit, cut at parameter borders.
std::vector<Segment> segments(const unit::Unit& unit, comm::Slice owned, bool decay_all);

class Optimizer {
 public:
  /// `parameters`: the owned part as it is computed with, which stays the caller's. It is the master itself if it is
  /// float32; else the master is memory of its own. The values are not set.
  explicit Optimizer(const device::View& parameters);
  virtual ~Optimizer() = default;

  /// The parameters that updates go on from.
  const device::View& master() const { return master_; }
  /// Sets the master, in float32; the parameters are the caller's to set.
  void set(const device::View& values);
  /// Updates the master, and the parameters that are computed with.
  void update(const Update& update, const device::View& gradient_sum);

  /// Moments, one element a parameter of the owned part: for checkpoints.
  virtual at::Tensor exp_avg() = 0;
  virtual at::Tensor exp_avg_sq() = 0;
  /// Sets the moments, and how many updates made them.
  virtual void restore(const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq, std::int64_t updates) = 0;
  /// Of the moments, and of the master where it is memory of its own.
  std::int64_t bytes();

 private:
  device::View parameters_;
  device::Buffer memory_;
  device::View master_;

  virtual void update_master(const Update& update, const device::View& gradient_sum) = 0;
};

/// zs's own kernel; the bits of the class below.
std::unique_ptr<Optimizer> fused_adamw(const AdamW& adamw, std::vector<Segment> segments,
                                       const device::View& parameters);
/// torch::optim::AdamW over the same memory. REQUIRES: adamw.correct_bias.
std::unique_ptr<Optimizer> torch_adamw(const AdamW& adamw, std::vector<Segment> segments,
                                       const device::View& parameters);

}  // namespace zs::zero

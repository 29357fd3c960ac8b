// SPDX-License-Identifier: Apache-2.0
// The optimizer of one unit's owned part: zs's one-pass AdamW, or LibTorch's class itself.
#pragma once
#include <memory>
#include <vector>

#include "comm/group.hpp"
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
  virtual ~Optimizer() = default;
  /// Updates the float32 parameters in place.
  virtual void update(const Update& update, const float* gradient_sum) = 0;
  /// Moments, one element a parameter of the owned part: for checkpoints.
  virtual at::Tensor exp_avg() = 0;
  virtual at::Tensor exp_avg_sq() = 0;
  /// Sets the moments, and how many updates made them.
  virtual void restore(const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq, std::int64_t updates) = 0;
};

/// zs's own kernel; the bits of the class below. `parameters` stays the caller's.
std::unique_ptr<Optimizer> fused_adamw(const AdamW& adamw, std::vector<Segment> segments, float* parameters,
                                       std::int64_t n);
/// torch::optim::AdamW over the same memory. REQUIRES: adamw.correct_bias.
std::unique_ptr<Optimizer> torch_adamw(const AdamW& adamw, std::vector<Segment> segments, float* parameters,
                                       std::int64_t n);

}  // namespace zs::zero

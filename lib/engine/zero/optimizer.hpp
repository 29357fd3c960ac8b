// SPDX-License-Identifier: Apache-2.0
// The optimizer of one unit's owned part and its state, float32: the master parameters and Adam's two moments, in
// device memory or offloaded. The update is zs's one-pass AdamW, or LibTorch's class itself.
#pragma once
#include <memory>
#include <vector>

#include "comm/group.hpp"
#include "device/memory.hpp"
#include "unit/unit.hpp"
#include "zero/adamw.hpp"
#include "zero/store.hpp"

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

  /// True if the master is memory of its own: the parameters that are computed with have 16 bits. Else they are it.
  bool has_master() const { return has_master_; }
  /// The parameters that updates go on from. REQUIRES: state() is in device memory.
  device::View master(const device::View& parameters) const;
  /// Sets the master, in float32, where it is memory of its own.
  void set(const device::View& values);
  /// Updates the master, and the parameters that are computed with.
  void update(const Update& update, const device::View& gradient_sum, const device::View& parameters);

  /// Moments, one element a parameter of the owned part, where they lie or a copy: for checkpoints.
  virtual at::Tensor exp_avg() = 0;
  virtual at::Tensor exp_avg_sq() = 0;
  /// Sets the moments, and how many updates made them.
  virtual void restore(const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq, std::int64_t updates) = 0;
  /// In device memory for good: of the moments, and of the master where it is memory of its own.
  virtual std::int64_t bytes() { return state_.resident_bytes(); }

  /// The master, if it is memory of its own, and what the optimizer keeps beside it.
  OffloadableBuffer& state() { return state_; }

 protected:
  /// For `parameters`, the owned part as it is computed with, which stays the caller's; with `kept` numbers of its own
  /// for each, at home there. All begin as zeros.
  Optimizer(const std::string& name, const device::View& parameters, int kept, const Residency& residency);
  /// The numbers of its own of number `index`. REQUIRES: as master().
  device::View own(int index) const;

 private:
  bool has_master_;
  std::int64_t count_;
  device::Device device_;
  OffloadableBuffer state_;

  /// `rounded`: where the updated master goes too, rounded to bfloat16; none where it is empty. True if it did.
  virtual bool update_master(const Update& update, const device::View& gradient_sum, const device::View& master,
                             const device::View& rounded) = 0;
  device::View numbers(int index) const;
};

/// What an optimizer is made for.
struct OptimizerOf {
  std::string name;  ///< of the unit, for errors
  AdamW adamw{};
  std::vector<Segment> segments{};
  device::View parameters{};  ///< as Optimizer() takes them
  Residency residency{};
  bool updates = true;  ///< false: there are none, and no moments
};

/// zs's own kernel; the bits of the class below.
std::unique_ptr<Optimizer> fused_adamw(const OptimizerOf& of);
/// torch::optim::AdamW over the same memory. REQUIRES: adamw.correct_bias, no store as home, parameters where they
/// stay.
std::unique_ptr<Optimizer> torch_adamw(const OptimizerOf& of);

}  // namespace zs::zero

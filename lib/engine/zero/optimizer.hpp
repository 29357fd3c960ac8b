// SPDX-License-Identifier: Apache-2.0
// The optimizer of one unit's owned part and its state, float32: the master parameters and what the rule of each of
// them keeps (optimizer/optimizer.hpp), in device memory or offloaded. The update is zs's own pass over memory, or
// LibTorch's AdamW itself.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "comm/group.hpp"
#include "device/memory.hpp"
#include "unit/unit.hpp"
#include "zero/directions.hpp"
#include "zero/rule.hpp"
#include "zero/store.hpp"

namespace zs::zero {

/// What one update takes besides the gradient sum.
struct Update {
  double learning_rate = 0;
  std::int64_t number = 1;  ///< counts from 1, skipped steps left out
  float scale = 1;          ///< the gradient is sum * scale * clip
  float clip = 1;
};

/// A run of elements that are updated alike: [begin, end) of the owned part.
struct Segment {
  std::int64_t begin = 0, end = 0;
  bool decay = true;
  optimizer::Rule rule = optimizer::Rule::adamw;
  Matrix matrix{};  ///< of Rule::muon: the one that it is a part of
};

/// How a unit is updated.
struct Recipe {
  optimizer::Settings settings{};
  std::vector<Segment> segments{};  ///< of the owned part, without gaps
  std::vector<Matrix> matrices{};   ///< of the unit, which are orthogonalised whole
  bool updates = true;              ///< false: there are none, and nothing is kept
};
/// Whether a unit is a block: neither the first nor the last.
inline bool is_block(const unit::Units& units, std::size_t unit) { return unit > 0 && unit + 1 < units.size(); }
Recipe recipe(const optimizer::Settings& settings, const unit::Unit& unit, bool block, comm::Slice owned,
              bool decay_all);
/// How a parameter of a unit is updated.
optimizer::Rule rule(const optimizer::Settings& settings, const unit::Parameter& parameter, bool block);
/// Numbers that are kept of a whole unit, beside its parameters.
std::int64_t kept(const optimizer::Settings& settings, const unit::Unit& unit, bool block);
/// Whether matrices of it are orthogonalised whole.
bool has_matrices(const optimizer::Settings& settings, const unit::Unit& unit, bool block);

/// How what is kept lies: number `slot` of each element whose rule keeps more than `slot`, behind one another.
class Slots {
 public:
  Slots() = default;
  explicit Slots(const Recipe& recipe);
  std::int64_t count(int slot) const { return counts_[static_cast<std::size_t>(slot)]; }
  std::int64_t count() const { return counts_[0] + counts_[1]; }
  /// The place in a slot of an element of the owned part. REQUIRES: its rule keeps that number.
  std::int64_t place(int slot, std::int64_t element) const;

 private:
  std::vector<Segment> segments_;
  std::array<std::int64_t, optimizer::kMostStates> counts_{};
};

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

  /// Where what is kept of each element lies in states().
  const Slots& slots() const { return slots_; }
  /// What is kept, by slot, where it lies or a copy: for checkpoints.
  virtual std::vector<at::Tensor> states() = 0;
  /// Sets it, and how many updates made it.
  virtual void restore(const std::vector<at::Tensor>& states, std::int64_t updates) = 0;
  /// In device memory for good: of what is kept, and of the master where it is memory of its own.
  virtual std::int64_t bytes() { return state_.resident_bytes(); }

  /// The master, if it is memory of its own, and what the optimizer keeps beside it.
  OffloadableBuffer& state() { return state_; }

 protected:
  /// For `parameters`, the owned part as it is computed with, which stays the caller's; what `slots` have room for is
  /// at home there, unless `apart`: then the class keeps it. All begin as zeros.
  Optimizer(const std::string& name, const device::View& parameters, Slots slots, const Residency& residency,
            bool apart = false);
  /// What is kept in a slot. REQUIRES: as master().
  device::View own(int slot) const;

 private:
  Slots slots_;
  bool has_master_;
  std::int64_t count_;
  device::Device device_;
  OffloadableBuffer state_;

  /// `rounded`: where the updated master goes too, rounded to bfloat16; none where it is empty. True if it did.
  virtual bool update_master(const Update& update, const device::View& gradient_sum, const device::View& master,
                             const device::View& rounded) = 0;
};

/// What an optimizer is made for.
struct OptimizerOf {
  std::string name;  ///< of the unit, for errors
  Recipe recipe{};
  device::View parameters{};  ///< as Optimizer() takes them
  Layout layout{};            ///< of the unit
  Pool* pool = nullptr;       ///< for directions of matrices; null where there are none
  Residency residency{};
};

/// zs's own kernels; of AdamW the bits of the class below. An update is COLLECTIVE where there are matrices.
std::unique_ptr<Optimizer> fused_optimizer(const OptimizerOf& of);
/// torch::optim::AdamW over the same memory. REQUIRES: AdamW, correct_bias, no store as home, parameters where they
/// stay.
std::unique_ptr<Optimizer> torch_adamw(const OptimizerOf& of);

}  // namespace zs::zero

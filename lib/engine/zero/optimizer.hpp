// SPDX-License-Identifier: Apache-2.0
// The optimizer of one unit's owned part and its state, float32: the master
// parameters and the state of each rule (optimizer/optimizer.hpp), in device
// memory or offloaded. The update is zs's own kernel, or LibTorch's AdamW.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/group.hpp"
#include "device/memory.hpp"
#include "device/operations.hpp"
#include "optimizer/optimizer.hpp"
#include "unit/unit.hpp"
#include "zero/directions.hpp"
#include "zero/store.hpp"

namespace zs::zero {

/// The inputs of one update besides the gradient sum.
struct Update {
  double learning_rate = 0;
  std::int64_t number = 1;  ///< counts from 1, without skipped steps
  float scale = 1;          ///< the gradient is sum * scale * clip
  float clip = 1;
};

/// A range of elements with the same update: [begin, end) of the owned part.
struct Segment {
  std::int64_t begin = 0, end = 0;
  bool decay = true;
  optimizer::Rule rule = optimizer::Rule::adamw;
  Matrix matrix{};       ///< for Rule::muon: the matrix that contains it
  comm::Slice tensor{};  ///< for Rule::adamw_8bit: the parameter that contains it, in the unit
};

/// A segment's part of values of all segments, or none of none.
inline device::View part(const device::View& of, const Segment& s) {
  return of.count > 0 ? of.part(s.begin, s.end) : of;
}

/// The updates of a unit.
struct Recipe {
  optimizer::Settings settings{};
  std::vector<Segment> segments{};   ///< of the owned part, without gaps
  std::vector<Matrix> matrices{};    ///< of the unit, orthogonalised as a whole
  std::vector<comm::Slice> coded{};  ///< parameters of the unit whose state has 8 bits
  bool updates = true;               ///< false: no updates, and no state
};
/// Whether a unit is a block: neither the first nor the last.
inline bool is_block(const unit::Units& units, std::size_t unit) { return unit > 0 && unit + 1 < units.size(); }
Recipe recipe(const optimizer::Settings& settings, const unit::Unit& unit, bool block, comm::Slice owned,
              bool decay_all);
/// The rule of a unit's parameter.
optimizer::Rule rule(const optimizer::Settings& settings, const unit::Parameter& parameter, bool block);
/// Numbers of optimizer state of a whole unit, besides its parameters; of 8 bits, four count as one.
std::int64_t kept(const optimizer::Settings& settings, const unit::Unit& unit, bool block);
/// Its matrices that are orthogonalised as a whole.
std::vector<Matrix> matrices(const optimizer::Settings& settings, const unit::Unit& unit, bool block);

/// The layout of the state: the concatenated numbers `slot` of all elements whose rule keeps more than `slot`.
class Slots {
 public:
  Slots() = default;
  explicit Slots(const Recipe& recipe);
  std::int64_t count(int slot) const { return counts_[static_cast<std::size_t>(slot)]; }
  std::int64_t count() const { return counts_[0] + counts_[1]; }
  /// The index in a slot of an element of the owned part. REQUIRES: its rule keeps that number.
  std::int64_t place(int slot, std::int64_t element) const;

 private:
  std::vector<Segment> segments_;
  std::array<std::int64_t, optimizer::kMostStates> counts_{};
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// True if the master is separate memory, since the computing parameters have 16 bits. Else they are the master.
  bool has_master() const { return has_master_; }
  /// The parameters that updates start from. REQUIRES: state() is in device memory.
  device::View master(const device::View& parameters) const;
  /// Sets the master, in float32, if it is separate memory.
  void set(const device::View& values);
  /// Updates the master, and the computing parameters.
  void update(const Update& update, const device::View& gradient_sum, const device::View& parameters);

  /// The index of each element's state in states().
  const Slots& slots() const { return slots_; }
  /// The state, by slot, in place or copied: for checkpoints.
  virtual std::vector<at::Tensor> states() = 0;
  /// Sets the state, and the number of updates so far.
  virtual void restore(const std::vector<at::Tensor>& states, std::int64_t updates) = 0;
  /// Bytes permanently in device memory: of the state, and of the master if it is separate.
  virtual std::int64_t bytes() { return state_.resident_bytes(); }

  /// The master, if it is separate memory, and the optimizer's state.
  OffloadableBuffer& state() { return state_; }

 protected:
  /// For `parameters`, the owned part used for computing, which the caller keeps; `bytes` of state are in that memory,
  /// what else there is the class keeps. All begin as zeros.
  Optimizer(const std::string& name, const device::View& parameters, Slots slots, const Residency& residency,
            std::int64_t bytes);
  /// Those bytes. REQUIRES: as master().
  device::View own() const;

 private:
  Slots slots_;
  bool has_master_;
  std::int64_t count_, bytes_;
  device::Device device_;
  OffloadableBuffer state_;

  /// `rounded`: also receives the updated master, rounded to bfloat16, unless empty. Returns whether it did.
  virtual bool update_master(const Update& update, const device::View& gradient_sum, const device::View& master,
                             const device::View& rounded) = 0;
};

/// The arguments of an optimizer.
struct OptimizerOf {
  std::string name;  ///< of the unit, for errors
  Recipe recipe{};
  device::View parameters{};  ///< as for Optimizer()
  Layout layout{};            ///< of the unit
  Pool* pool = nullptr;       ///< for directions of matrices; null if there are none
  Residency residency{};
};

/// zs's kernels; for AdamW the bits of the class below. An update is COLLECTIVE if there are matrices.
std::unique_ptr<Optimizer> fused_optimizer(const OptimizerOf& of);
/// AdamW whose moments have 8 bits (device/coded.hpp), of every parameter with at least optimizer::kLeastCoded
/// elements: the same numbers as bitsandbytes' AdamW8bit. An update is COLLECTIVE.
std::unique_ptr<Optimizer> coded_adamw(const OptimizerOf& of);
/// torch::optim::AdamW over the same memory. REQUIRES: AdamW, correct_bias, no offload of the state, parameters that
/// stay in place.
std::unique_ptr<Optimizer> torch_adamw(const OptimizerOf& of);

// Converts an optimizer's rules to rules of the elementwise kernels (device::Operations::update).

/// `update` counts from 1. `decay` false disables weight decay. REQUIRES: not Rule::muon.
device::Rule factors(const optimizer::Settings& settings, optimizer::Rule rule, double learning_rate,
                     std::int64_t update, bool decay);

/// For a matrix under Muon: the step along the orthogonalised direction, adjusted to its shape.
device::Rule matrix_step(const optimizer::Settings& settings, double learning_rate, bool decay, std::int64_t rows,
                         std::int64_t columns);
device::DirectionFactors direction(const optimizer::Settings& settings);

}  // namespace zs::zero

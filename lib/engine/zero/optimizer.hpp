// SPDX-License-Identifier: Apache-2.0
// The optimizer of one unit's owned part and its state, float32: the master
// parameters and the state of each rule (optimizer/optimizer.hpp), in device
// memory or offloaded. The update is zs's own kernel, or LibTorch's AdamW.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/group.hpp"
#include "device/memory.hpp"
#include "device/operations.hpp"
#include "optimizer/optimizer.hpp"
#include "unit/unit.hpp"
#include "zero/directions.hpp"
#include "zero/offloadable.hpp"
#include "zero/recipe.hpp"
#include "zero/rule.hpp"

namespace zs::zero {

/// The inputs of one update besides the gradient sum.
struct Update {
  double learning_rate = 0;
  std::int64_t number = 1;  ///< counts from 1, without skipped steps
  float scale = 1;          ///< the gradient is sum * scale * clip
  float clip = 1;
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
std::unique_ptr<Optimizer> fused_optimizer(const OptimizerOf& unit);
/// AdamW whose moments have 8 bits (device/coded.hpp), of every parameter with at least optimizer::kLeastCoded
/// elements: the same numbers as bitsandbytes' AdamW8bit. An update is COLLECTIVE.
std::unique_ptr<Optimizer> coded_adamw(const OptimizerOf& unit);
/// torch::optim::AdamW over the same memory. REQUIRES: AdamW, correct_bias, no offload of the state, parameters that
/// stay in place.
std::unique_ptr<Optimizer> torch_adamw(const OptimizerOf& unit);

}  // namespace zs::zero

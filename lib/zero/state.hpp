// SPDX-License-Identifier: Apache-2.0
// What one rank holds of one unit: parameters (whole, or a shard that is gathered for a while), the fp32 master
// of the part it owns, gradients on their way, and the activations of the micro-step under way.
#pragma once
#include <optional>
#include <vector>

#include "comm/group.hpp"
#include "comm/tree.hpp"
#include "unit/unit.hpp"
#include "zero/pool.hpp"

namespace zs::zero {

/// How parameters are kept and computed with.
struct Layout {
  int stage = 0;
  at::ScalarType dtype = at::kFloat;  ///< of parameters in forward and backward
};

class UnitState {
 public:
  /// COLLECTIVE: takes its lasting memory from the pool. Parameters are not set.
  UnitState(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout);

  const unit::Unit& unit() const { return *unit_; }
  std::int64_t numel() const { return unit_->numel(); }
  /// What this rank owns, of the unit's flat buffer: all of it in stage 0.
  comm::Slice owned() const { return owned_; }

  /// The fp32 parameters that the optimizer updates: owned().size() elements.
  float* master() const { return master_; }

  /// Bytes of the master where it is a copy of its own (16-bit parameters).
  std::int64_t master_bytes() const { return master_memory_.defined() ? owned_.size() * 4 : 0; }

  /// Sets parameters from float32[numel], the same on every rank.
  void set_parameters(const at::Tensor& flat);
  /// The whole float32[numel] from the masters of all ranks. COLLECTIVE.
  at::Tensor gather_parameters();
  /// The parameters that this rank would compute with now, as float32[numel]: its own whole copy where it keeps one
  /// (stages 0 to 2), else gathered. COLLECTIVE.
  at::Tensor compute_parameters();
  /// The sum over all leaves, whole, as float32[numel], between its reduction and the update. COLLECTIVE.
  at::Tensor gather_gradient();

  /// Starts and finishes the all-gather of the parameters. COLLECTIVE.
  void start_gather();
  void finish_gather();
  /// Drops the gathered parameters (stage 3); reading them from here on faults.
  void release();
  /// After an update of the master: brings the compute copy of the owned part up to date.
  void publish();

  /// Parameter tensors of the layout's dtype, leaves of the autograd graph, in the unit's order.
  const std::vector<at::Tensor>& parameters() const { return leaves_; }
  /// A second set of leaves over the same memory, for the unit that borrows them.
  const std::vector<at::Tensor>& lent() const { return lent_; }

  /// Points the leaves' gradients at the leaf gradient buffer, which is made (zeros) if it is not there.
  void expect_gradient(const std::vector<at::Tensor>& leaves);
  /// Takes the gradients off the leaves again.
  static void forget_gradient(const std::vector<at::Tensor>& leaves);
  /// After the micro-step's last contribution: the leaf gradient in float32.
  void finish_leaf_gradient();

  /// Local summation of leaf gradients over micro-steps (stages 0 and 1).
  void accumulate(int micro_steps);
  /// The reduce-scatter of the leaf gradient or of the local sum; its result is gradient_sum(). COLLECTIVE.
  void start_reduce();
  void finish_reduce();
  /// Adds what was reduced to the sum over micro-steps (stages 2 and 3).
  void accumulate_shard(int micro_steps);
  /// All-gather of the reduced gradient (stage 0). COLLECTIVE.
  void start_gather_gradient();
  void finish_gather_gradient();
  /// The leaf gradient of the micro-step under way, numel elements; null outside of it.
  const float* leaf_gradient() const { return leaf_ ? as<float>(leaf_) : nullptr; }
  /// What start_reduce would send: the leaf gradient, or the local sum of all micro-steps.
  float* local_sum() { return leaf_ ? as<float>(leaf_) : tree_->sum(); }
  /// The sum of all leaves' gradients, for owned(), once its reduction has finished; null before it starts.
  const float* gradient_sum() const { return gradient_; }
  /// Flips the lowest bit of one element of the gradient sum, by its index in the unit, if this rank owns it.
  void flip_gradient_bit(std::int64_t element);
  /// Drops the gradient and its memory.
  void drop_gradient();

  // Activations of the micro-step under way; set and cleared by the executor.
  at::Tensor input, output;

 private:
  const unit::Unit* unit_;
  comm::Group* group_;
  Pool* pool_;
  Layout layout_;
  comm::Slice slice_, owned_;
  bool sharded_;  // parameters are whole only between gather and release

  at::Tensor flat_;  // numel of dtype; its memory comes and goes when sharded
  Buffer whole_, shard_, pending_whole_;
  at::Tensor master_memory_;  // where the master is not the compute copy itself
  float* master_ = nullptr;
  std::vector<at::Tensor> leaves_, lent_;

  Buffer leaf_, leaf_low_;  // float32, and the 16-bit one that autograd writes
  Buffer reduced_;          // the shard's part of the leaf gradient, from stage 2 on
  std::optional<comm::TreeAccumulator> tree_;
  float* gradient_ = nullptr;
  comm::Ticket gather_, reduce_;

  bool low_precision() const { return layout_.dtype != at::kFloat; }
  std::size_t element_size() const { return at::elementSize(layout_.dtype); }
  at::Tensor gather_owned(const float* owned, const std::string& what);
  std::byte* compute_owned() const;
  void set_storage(std::byte* data);
  comm::TreeAccumulator& tree(std::int64_t n);
};

}  // namespace zs::zero

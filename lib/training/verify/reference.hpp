// SPDX-License-Identifier: Apache-2.0
// The reference training of zs-verify: LibTorch's autograd over the whole model in one graph, on the verified device;
// gradients are added by the canonical tree and the optimizer uses tensor operations, on the host. Written only from
// the contract; uses nothing of zero, plan or comm.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "optimizer/optimizer.hpp"
#include "unit/unit.hpp"
#include "verify/plain_scale.hpp"
#include "verify/sums.hpp"

namespace zs::verify {

struct ReferenceSettings {
  at::ScalarType dtype = at::kFloat;  ///< of parameters in forward and backward; masters stay float32
  optimizer::Settings optimizer{};
  at::Device device = at::kCPU;  ///< of forward and backward
  bool torch_adamw = false;      ///< use torch::optim::AdamW, which always corrects the bias
  bool decay_all = true;         ///< false: no weight decay for biases and norms
  double max_grad_norm = 0;      ///< 0: no clipping
  PlainScale::Rules loss_scaling{};
  int weight_bits = 0, gradient_bits = 0;  ///< bits of quantized parameters, and of each leaf's gradient
  /// Gathers bring weights of products of 8 bits as these, in numbers that the products round to the same bits: the
  /// reference computes with the exact ones, and rounded() has those that are brought.
  bool float8_gathers = false;
  at::ScalarType autocast = at::kFloat;  ///< torch.autocast in forward; float32: none
  /// Runs each document of a micro-batch (each sample, if they hold one) through the model separately and without
  /// padding, from position 0; adds their losses, weighted by their share of the targets.
  bool apart = false;
  /// Adapters are added to the weights before a product, W + merged * B A; 0: the units apply them.
  double merged = 0;
  /// Chunks in which each sequence is computed, each a leaf of the sums.
  std::int64_t chunks = 1;
  /// Computes whole sequences instead of chunks. Then a micro-batch's gradient counts for each of its chunks, and
  /// leaves and their losses are not known.
  bool undivided = false;
  bool scales() const { return dtype == at::kHalf || autocast == at::kHalf; }
  std::uint64_t seed = 1;
  unit::PackedBeginning packed{};  ///< what a file has in 4 bits: `begin` gives its numbers as they are
  unit::Beginning begin{};         ///< initial parameters; null: the units' own, by the seed
};

/// The results of one step, before the update.
struct ReferenceStep {
  std::vector<float> leaf_losses;
  float loss = 0;    ///< the mean over leaves
  Tensors sums;      ///< gradients of the scaled loss, summed over leaves
  double scale = 1;  ///< gradient sum times this is the mean gradient
  double grad_norm = 0, clipped_norm = 0;
  double loss_scale = 1;  ///< factor of the loss (float16)
  float clip = 1;
  bool skipped = false;  ///< float16: the gradient is not finite, update() does nothing
};

class Reference {
 public:
  using BatchOf = std::function<unit::Batch(std::int64_t micro_batch)>;
  /// Receives the gradients of each leaf, not rounded to integers.
  using LeafSeen = std::function<void(std::int64_t leaf, const Tensors& gradients)>;

  /// `leaves` of a step: micro-batches, or chunks of them. The units must outlive the reference.
  Reference(const unit::Units& units, const ReferenceSettings& settings, std::int64_t leaves);

  /// Losses and gradients of a step; steps count from 1.
  ReferenceStep compute(std::int64_t step, const BatchOf& batch, const LeafSeen& seen);
  /// The update that follows.
  void update(const ReferenceStep& step, double learning_rate);

  /// The float32 parameters.
  Tensors parameters() const;
  /// The parameters that gathers bring for forward and backward, as float32.
  Tensors rounded() const;
  /// The part of a leaf's gradient that is added.
  Tensors added(const Tensors& leaf) const;
  std::int64_t skipped() const { return scale_.skipped(); }

 private:
  const unit::Units& units_;
  ReferenceSettings settings_;
  std::int64_t leaves_;
  Tensors masters_;  // on the host; torch::optim::AdamW rounds like its device, and has them there
  std::shared_ptr<class PlainOptimizer> optimizer_;
  PlainScale scale_;

  Tensors leaves() const;
  /// The loss of a micro-batch with the given leaf tensors.
  at::Tensor loss(const Tensors& leaves, const unit::Batch& batch, std::uint64_t stream) const;
  /// The tensors that a unit's forward computes with: its leaves, perhaps widened, perhaps with adapters merged.
  std::vector<at::Tensor> used(const Tensors& leaves, std::size_t unit) const;
  /// The losses of its chunks, each with separate leaf tensors and random numbers.
  std::vector<at::Tensor> losses(const std::vector<Tensors>& leaves, const unit::Batch& batch,
                                 const std::vector<std::uint64_t>& streams) const;
  /// The losses of a micro-batch's leaves; `leaf` is the first of them.
  std::vector<Tensors> gradients(std::int64_t step, std::int64_t leaf, const unit::Batch& batch, ReferenceStep& result);
};

}  // namespace zs::verify

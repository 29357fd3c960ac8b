// SPDX-License-Identifier: Apache-2.0
// The reference optimizers of zs-verify: each follows PyTorch's class or, for Lion, the paper's algorithm, by tensor
// operations on whole parameters. Uses nothing of zero or device.
#pragma once
#include <memory>
#include <vector>

#include "verify/reference.hpp"

namespace torch::optim {
class AdamW;
}

namespace zs::verify {

class PlainOptimizer {
 public:
  /// Updates `masters` in place.
  PlainOptimizer(const unit::Units& units, const Tensors& masters, const ReferenceSettings& settings);
  ~PlainOptimizer();

  /// REQUIRES: the parameters' gradients are set.
  void step(double learning_rate);

 private:
  struct Plain {
    at::Tensor parameter;
    bool decays, matrix;      // of a block
    at::Tensor kept[2] = {};  // initially zero
  };
  ReferenceSettings settings_;
  int steps_ = 0;
  std::unique_ptr<torch::optim::AdamW> torch_;
  std::vector<Plain> plain_;

  void make_torch();
  void adam(Plain& p, double learning_rate, bool decay_in_gradient) const;
  void sgd(Plain& p, double learning_rate) const;
  void lion(Plain& p, double learning_rate) const;
  void muon(Plain& p, double learning_rate) const;
  at::Tensor orthogonal(const at::Tensor& direction) const;
};

}  // namespace zs::verify

// SPDX-License-Identifier: Apache-2.0
// How a fused layer gives a parameter its gradient.
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel {

/// Where a parameter's gradient goes: its own .grad if that is there, else a tensor that is given back to autograd.
class Gradient {
 public:
  explicit Gradient(const at::Tensor& parameter) {
    if (parameter.is_leaf() && parameter.grad().defined()) {
      sum_ = parameter.grad();
    } else {
      sum_ = returned_ = at::zeros_like(parameter);
    }
  }
  /// Add to it.
  at::Tensor& sum() { return sum_; }
  /// Undefined if everything has arrived.
  const at::Tensor& returned() const { return returned_; }

 private:
  at::Tensor sum_, returned_;
};

}  // namespace zs::kernel

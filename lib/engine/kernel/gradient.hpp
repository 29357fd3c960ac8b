// SPDX-License-Identifier: Apache-2.0
// How a fused layer delivers a parameter's gradient.
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel {

/// The destination of a parameter's gradient: its .grad if set, else a tensor that is returned to autograd.
/// One that is frozen has none: what is added is dropped.
class Gradient {
 public:
  explicit Gradient(const at::Tensor& parameter) : parameter_(parameter) {
    if (!wanted()) return;
    if (parameter.is_leaf() && parameter.grad().defined()) {
      sum_ = parameter.grad();
    } else {
      sum_ = returned_ = at::zeros_like(parameter);
    }
  }
  /// Whether it goes anywhere: what is costly need not be made else.
  bool wanted() const { return parameter_.requires_grad(); }
  /// The tensor to add to.
  at::Tensor& sum() {
    if (!sum_.defined()) sum_ = at::zeros_like(parameter_);
    return sum_;
  }
  /// The gradient for autograd; undefined if it went to .grad.
  const at::Tensor& returned() const { return returned_; }

 private:
  at::Tensor parameter_, sum_, returned_;
};

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
// How a fused layer delivers a parameter's gradient.
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel {

/// Where a parameter's gradient goes: its own .grad if that is there, else a tensor that is given back to autograd.
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
  /// Add to it.
  at::Tensor& sum() {
    if (!sum_.defined()) sum_ = at::zeros_like(parameter_);
    return sum_;
  }
  /// Undefined if everything has arrived.
  const at::Tensor& returned() const { return returned_; }

 private:
  at::Tensor parameter_, sum_, returned_;
};

}  // namespace zs::kernel

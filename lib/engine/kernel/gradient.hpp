// SPDX-License-Identifier: Apache-2.0
// How a fused layer delivers a parameter's gradient.
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel {

/// The destination of a parameter's gradient: its .grad if set; for a part of a leaf, the same part of the leaf's
/// .grad; else a tensor that is returned to autograd. A frozen parameter has none: what is added is dropped.
class Gradient {
 public:
  explicit Gradient(const at::Tensor& parameter) : parameter_(parameter) {
    if (!wanted()) return;
    const bool part = !parameter.is_leaf() && parameter.is_view() && parameter.numel() < parameter._base().numel();
    const at::Tensor leaf = part ? at::Tensor(parameter._base()) : parameter;
    if (leaf.is_leaf() && leaf.grad().defined() && (!part || (leaf.is_contiguous() && leaf.grad().is_contiguous()))) {
      const at::Tensor& whole = leaf.grad();
      sum_ = part ? whole.as_strided(parameter.sizes(), parameter.strides(),
                                     whole.storage_offset() + parameter.storage_offset() - leaf.storage_offset())
                  : whole;
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

// SPDX-License-Identifier: Apache-2.0
// Products of one input with several weights on a GPU. One call multiplies all weights; biases and adapters are added.
// Backward makes gradients of the trained parameters only: a frozen weight costs one product, a trained one two.
// Shapes: N rows, I inner, O outer width of all weights, R rank of an adapter.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "kernel/cuda_product.hpp"
#include "kernel/gradient.hpp"
#include "kernel/kernels.hpp"

namespace zs::kernel::cuda {

/// The defined parameters of a node of autograd, each once, in order.
class Listed {
 public:
  void add(const at::Tensor& parameter);
  const std::vector<at::Tensor>& all() const { return all_; }

 private:
  std::vector<at::Tensor> all_;
};

/// The gradients of listed parameters.
class Gradients {
 public:
  explicit Gradients(const Listed& parameters);
  /// REQUIRES: listed.
  Gradient& of(const at::Tensor& parameter);
  /// The result of a node's backward: dx, then the gradients of the parameters, then none for the state.
  std::vector<at::Tensor> after(const at::Tensor& dx) const;

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<Gradient> all_;
};

class Joint {
 public:
  Joint() = default;
  /// REQUIRES: adapters have one scale.
  explicit Joint(std::vector<Projection> parts) : parts_(std::move(parts)) {}

  void list(Listed& listed) const;
  std::int64_t columns() const;  ///< O
  /// y_NO = x times the transposed weights, plus `addend_NO` if it is defined.
  void forward(const at::Tensor& y_NO, const at::Tensor& x_NI, const at::Tensor& addend_NO = {});
  /// Keeps only what backward needs, for a second forward whose result is not read.
  void forward_again(const at::Tensor& x_NI);
  bool adapts() const;
  /// dx_NI = the gradient of x, plus `addend_NI` if it is defined. add() must follow: it adds the parameters'
  /// gradients.
  void backward(const at::Tensor& dx_NI, const at::Tensor& dy_NO, const at::Tensor& addend_NI = {});
  void add(const at::Tensor& x_NI, Gradients& sums);

 private:
  std::vector<Projection> parts_;
  at::Tensor most_x_, most_weight_;  // the largest magnitudes, of products of 8 bits
  at::Tensor low_NR_, dlow_NR_;      // of all adapters: their factors times x a^T, and the gradient of x a^T
  at::Tensor dy_NO_;
  std::optional<Factor> dy_;

  std::vector<at::Tensor> weights() const;
  at::Tensor bias() const;
  /// The first factors of the adapters; parts that share one follow each other. All are multiplied with x at once.
  std::vector<at::Tensor> first_factors() const;
  at::Tensor low(const at::Tensor& x_NI) const;
  double scale() const;
  /// Calls `see` with each adapter, its columns of `of_NO` and of `low_NR`, and whether it is the first that has the
  /// latter.
  template <typename See>
  void each_adapter(const at::Tensor& of_NO, const at::Tensor& low_NR, See see) const;
};

}  // namespace zs::kernel::cuda

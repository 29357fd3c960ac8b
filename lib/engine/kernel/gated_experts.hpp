// SPDX-License-Identifier: Apache-2.0
// The networks of experts as one node of autograd, for GPUs, which would otherwise wait for the host: products of all
// experts at once, with the bits of one expert after another; elementwise operations cover all experts' rows. Gradients
// of weights go to .grad if it is set. Shapes as in experts.hpp; row r is of expert expert_R[r].
#pragma once
#include <cstdint>
#include <span>
#include <utility>

#include "kernel/experts.hpp"

namespace zs::kernel {

/// How an inner number is made of a gate g and an up u: SiLU(g) u, of gates in the first I columns; or, if they
/// alternate, (u + 1) g sigmoid(alpha g), of g up to `limit` and u within it.
struct Gating {
  bool alternates = false;
  double alpha = 0, limit = 0;
};

/// The operations of experts other than products.
struct ExpertParts {
  /// The inner numbers [R, I] of `pre_RX`, [R, 2I], to which the bias of each row's expert is added if it is defined.
  at::Tensor (*activate)(const at::Tensor& pre_RX, const at::Tensor& bias_EX, const at::Tensor& expert_R,
                         const Gating& how);
  /// The gradient of `pre_RX`, and the inner numbers again. They may be written over `pre_RX` and `dinner_RI`.
  std::pair<at::Tensor, at::Tensor> (*activate_backward)(const at::Tensor& pre_RX, const at::Tensor& bias_EX,
                                                         const at::Tensor& expert_R, const Gating& how,
                                                         const at::Tensor& dinner_RI);
  /// Adds the bias of each row's expert in place.
  void (*add_bias)(const at::Tensor& made_RC, const at::Tensor& bias_EC, const at::Tensor& expert_R);
  /// x_NC plus the weighted sum, in float32 and rounded once, of the rows place_R[n K], ..., place_R[n K + K - 1] of
  /// each token n. Differentiable. Null: by LibTorch's operations.
  at::Tensor (*combine)(const at::Tensor& x_NC, const at::Tensor& made_RC, const at::Tensor& place_R,
                        const at::Tensor& weights_NK);
};
/// LibTorch's operations.
const ExpertParts& plain_parts();

/// The outputs of experts for rows that are ordered by expert, counts[e] of them for expert e: [R, C]. Differentiable;
/// the gradient of an expert without rows is zeros. REQUIRES: one form, and one type.
at::Tensor gated_experts(const at::Tensor& rows_RC, std::span<const std::int64_t> counts,
                         std::span<const Expert> experts, const Gating& how, const ExpertParts& parts);

}  // namespace zs::kernel

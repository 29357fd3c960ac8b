// SPDX-License-Identifier: Apache-2.0
// The layers that cost a transformer its time, in two forms: as LibTorch's own operations, and fused (--compile).
// Both are differentiable and deterministic; they agree to rounding, not to the bit.
// Shapes: B samples, T tokens, N = B*T, C width, E = 3*C, H heads, I inner and O outer width, V vocabulary.
#pragma once
#include <cstdint>

#include "unit/tensor.hpp"

namespace zs::kernel {

/// x as it came, and normalised: both from one call, so that backward adds the two gradients of x in one pass.
struct Normed {
  at::Tensor x, y;
};

struct Kernels {
  /// Layer norm over the last dimension.
  Normed (*norm)(const at::Tensor& x_BTC, const at::Tensor& weight_C, const at::Tensor& bias_C, double epsilon);
  /// x_BTI times weight_IO plus bias_O: [B, T, O].
  at::Tensor (*linear)(const at::Tensor& x_BTI, const at::Tensor& weight_IO, const at::Tensor& bias_O);
  /// GELU by tanh (Hendrycks & Gimpel 2016) of linear().
  at::Tensor (*linear_gelu)(const at::Tensor& x_BTI, const at::Tensor& weight_IO, const at::Tensor& bias_O);
  /// residual_BTO plus linear().
  at::Tensor (*linear_add)(const at::Tensor& x_BTI, const at::Tensor& weight_IO, const at::Tensor& bias_O,
                           const at::Tensor& residual_BTO);
  /// Causal self-attention of H heads over the queries, keys and values of qkv_BTE, with dropout of the weights: [B, T,
  /// C].
  at::Tensor (*attention)(const at::Tensor& qkv_BTE, std::int64_t heads, double dropout, std::uint64_t key);
  /// Rows of weight_VC: [B, T, C].
  at::Tensor (*embedding)(const at::Tensor& weight_VC, const at::Tensor& tokens_BT);
  /// Mean cross-entropy of the next token under the logits x_NC times the transpose of weight_VC: a scalar.
  at::Tensor (*loss)(const at::Tensor& x_NC, const at::Tensor& weight_VC, const at::Tensor& targets_N);
};

/// LibTorch's operations, on any device.
const Kernels& plain();

/// Fewer passes over memory. A parameter's gradient is added straight into its .grad where that is set beforehand (a
/// leaf of the engine's flat buffer), and returned to autograd where not.
const Kernels& fused();

namespace cuda {
/// The same for a GPU, in float32 (or TF32), bfloat16 or float16: cuBLASLt, cuDNN and own kernels.
const Kernels& fused();
}  // namespace cuda

/// Whether float32 products on a GPU may be made of TF32: 10 bits of mantissa. For the whole process.
void allow_tf32(bool allow);

/// The kernels of a device, plain or fused. Throws zs::Error where this build has none.
const Kernels& chosen(bool fused, at::DeviceType device);

}  // namespace zs::kernel

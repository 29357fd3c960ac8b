// SPDX-License-Identifier: Apache-2.0
// A decoder's layers, composed of kernels.
#include "kernel/kernels.hpp"

namespace zs::kernel {

using at::Tensor;

namespace {

Tensor projected(const Kernels& by, const Tensor& x_BTI, const Projection& of) {
  return by.project(x_BTI, of.weight_OI, of.bias_O);
}

/// x as it came, and normalised where there is a norm before the layer.
Normed before(const Kernels& by, const Tensor& x_BTC, const Tensor& norm_C, double epsilon) {
  return norm_C.defined() ? by.rms_norm(x_BTC, norm_C, epsilon) : Normed{x_BTC, x_BTC};
}

/// x plus what the layer made, normalised where there is a norm after it.
Tensor after(const Kernels& by, const Tensor& x_BTC, const Tensor& made_BTC, const Tensor& norm_C, double epsilon) {
  return x_BTC + (norm_C.defined() ? by.rms_norm(made_BTC, norm_C, epsilon).y : made_BTC);
}

/// Queries or keys: of a weight of fewer numbers than they have, each head's are normalised.
Tensor normalised(const Kernels& by, const Tensor& x_BTE, const Tensor& weight, double epsilon) {
  if (!weight.defined()) return x_BTE;
  return by.rms_norm(x_BTE.reshape({x_BTE.size(0), x_BTE.size(1), -1, weight.size(0)}), weight, epsilon)
      .y.view(x_BTE.sizes());
}

/// Heads of D numbers turned by their position, whole or the first 2R numbers of each.
Tensor turned(const Kernels& by, const Tensor& x_BTE, std::int64_t D, const AttentionLayer& layer) {
  const std::int64_t B = x_BTE.size(0), T = x_BTE.size(1), first = 2 * layer.cos_TR.size(1);
  if (first == D) return by.rotate(x_BTE, layer.cos_TR, layer.sin_TR);
  const Tensor x_BTHD = x_BTE.reshape({B, T, -1, D});
  const Tensor turned_BTF = by.rotate(x_BTHD.narrow(3, 0, first).reshape({B, T, -1}), layer.cos_TR, layer.sin_TR);
  return at::cat({turned_BTF.view({B, T, -1, first}), x_BTHD.narrow(3, first, D - first)}, 3).view(x_BTE.sizes());
}

}  // namespace

Tensor attention_layer(const Kernels& by, const Tensor& x_BTC, const AttentionLayer& layer) {
  const std::int64_t D = layer.q.weight_OI.size(0) / layer.attending.heads;
  const auto [x, in_BTC] = before(by, x_BTC, layer.norm_C, layer.epsilon);
  const auto turned_heads = [&](const Projection& of, const Tensor& norm) {
    return turned(by, normalised(by, projected(by, in_BTC, of), norm, layer.epsilon), D, layer);
  };
  // In this order: backward adds up the gradient of the input in the opposite one.
  const Tensor v_BTF = projected(by, in_BTC, layer.v);
  const Tensor k_BTF = turned_heads(layer.k, layer.k_norm);
  const Tensor q_BTE = turned_heads(layer.q, layer.q_norm);
  const Tensor attended_BTE = by.grouped_attention(q_BTE, k_BTF, v_BTF, layer.attending);
  return after(by, x, projected(by, attended_BTE, layer.o), layer.post_norm_C, layer.epsilon);
}

Tensor gated_layer(const Kernels& by, const Tensor& x_BTC, const GatedLayer& layer) {
  const auto [x, in_BTC] = before(by, x_BTC, layer.norm_C, layer.epsilon);
  const Tensor up_BTI = projected(by, in_BTC, layer.up), gate_BTI = projected(by, in_BTC, layer.gate);
  const Tensor inner_BTI = (layer.activation == Activation::silu ? by.swiglu : by.geglu)(gate_BTI, up_BTI);
  return after(by, x, projected(by, inner_BTI, layer.down), layer.post_norm_C, layer.epsilon);
}

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
// Llama's layers, composed of kernels.
#include "kernel/kernels.hpp"

namespace zs::kernel {

using at::Tensor;

Tensor attention_layer(const Kernels& by, const Tensor& x_BTC, const AttentionLayer& layer) {
  const auto project = [&](const Tensor& in, const Projection& of) { return by.project(in, of.weight_OI, of.bias_O); };
  const auto rotate = [&](const Tensor& in) { return by.rotate(in, layer.cos_TR, layer.sin_TR); };
  const auto [x, normed_BTC] = by.rms_norm(x_BTC, layer.norm_C, layer.epsilon);
  const Tensor attended_BTE =
      by.grouped_attention(rotate(project(normed_BTC, layer.q)), rotate(project(normed_BTC, layer.k)),
                           project(normed_BTC, layer.v), layer.heads, layer.dropout, layer.key);
  return x + project(attended_BTE, layer.o);
}

Tensor gated_layer(const Kernels& by, const Tensor& x_BTC, const GatedLayer& layer) {
  const auto project = [&](const Tensor& in, const Projection& of) { return by.project(in, of.weight_OI, of.bias_O); };
  const auto [x, normed_BTC] = by.rms_norm(x_BTC, layer.norm_C, layer.epsilon);
  return x + project(by.swiglu(project(normed_BTC, layer.gate), project(normed_BTC, layer.up)), layer.down);
}

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
// A decoder's layers, composed of kernels.
#include <vector>

#include "kernel/kernels.hpp"
#include "unit/random.hpp"

namespace zs::kernel {

using at::Tensor;

namespace {

Tensor projected(const Kernels& by, const Tensor& x_BTI, const Projection& projection) {
  return adapted(by, x_BTI, by.project(x_BTI, projection.weight_OI, projection.bias_O), projection.adapter);
}

/// x as it came, and normalised where there is a norm before the layer.
Normed before(const Kernels& by, const Tensor& x_BTC, const NormWeight& norm_C, double epsilon) {
  return norm_C.defined() ? by.rms_norm(x_BTC, norm_C, epsilon) : Normed{x_BTC, x_BTC};
}

/// x plus what the layer made, normalised where there is a norm after it.
Tensor after(const Kernels& by, const Tensor& x_BTC, const Tensor& made_BTC, const NormWeight& norm_C, double epsilon) {
  return x_BTC + (norm_C.defined() ? by.rms_norm(made_BTC, norm_C, epsilon).y : made_BTC);
}

/// Queries or keys: of a weight of fewer numbers than they have, each head's are normalised.
Tensor normalised(const Kernels& by, const Tensor& x_BTE, const NormWeight& norm, double epsilon) {
  if (!norm.defined()) return x_BTE;
  return by.rms_norm(x_BTE.reshape({x_BTE.size(0), x_BTE.size(1), -1, norm.weight.size(0)}), norm, epsilon)
      .y.view(x_BTE.sizes());
}

/// Heads of D numbers turned by their position, whole or the first 2R numbers of each.
Tensor turned(const Kernels& by, const Tensor& x_BTE, std::int64_t D, const AttentionLayer& layer) {
  if (!layer.attending.documents.empty() && x_BTE.size(0) > 1) {  // angles are token by token: all are one sample
    return turned(by, x_BTE.reshape({1, -1, x_BTE.size(2)}), D, layer).view(x_BTE.sizes());
  }
  const std::int64_t B = x_BTE.size(0), T = x_BTE.size(1), first = 2 * layer.cos_TR.size(1);
  if (first == D) return by.rotate(x_BTE, layer.cos_TR, layer.sin_TR);
  const Tensor x_BTHD = x_BTE.reshape({B, T, -1, D});
  const Tensor turned_BTF = by.rotate(x_BTHD.narrow(3, 0, first).reshape({B, T, -1}), layer.cos_TR, layer.sin_TR);
  return at::cat({turned_BTF.view({B, T, -1, first}), x_BTHD.narrow(3, first, D - first)}, 3).view(x_BTE.sizes());
}

/// Calls `attend` for one document after another, with its first token, its number of tokens, and its window.
template <typename Attend>
Tensor one_by_one(const Tensor& of_BTE, std::int64_t outer, const Attending& how, const Attend& attend) {
  const std::int64_t N = of_BTE.size(0) * of_BTE.size(1);
  std::vector<Tensor> made;
  for (std::size_t i = 0; i < how.documents.size(); ++i) {
    const std::int64_t begin = how.documents[i], end = i + 1 < how.documents.size() ? how.documents[i + 1] : N;
    Attending alone = how;
    alone.documents = {};
    if (alone.window >= end - begin) alone.window = 0;
    if (alone.dropout > 0) alone.key = unit::mix(how.key, static_cast<std::uint64_t>(begin));
    made.push_back(attend(begin, end - begin, alone));
  }
  return at::cat(made, 1).view({of_BTE.size(0), of_BTE.size(1), outer});
}

Tensor row_range(const Tensor& x_BTE, std::int64_t begin, std::int64_t count) {
  return x_BTE.reshape({1, -1, x_BTE.size(2)}).narrow(1, begin, count);
}

const Kernels& of_any_length(const Kernels& by, const Tensor& x, const Attending& how) {
  return x.is_cuda() || how.sinks_H.defined() ? plain() : by;
}

bool takes_documents(const Kernels& by, const Tensor& q_BTE, const Attending& how) {
  return by.takes_documents && by.takes_documents(q_BTE, how);
}

}  // namespace

Tensor NormWeight::factor() const {
  if (!defined() || scale == NormScale::rounded) return weight;
  const Tensor wide = weight.to(at::kFloat);
  return scale == NormScale::wide ? wide : wide + 1;
}

Tensor adapted(const Kernels& by, const Tensor& x_BTI, const Tensor& product_BTO, const Adapter& adapter) {
  if (!adapter.defined()) return product_BTO;
  const Tensor low_BTR = by.project(x_BTI, adapter.a_RI, {});
  return product_BTO + by.project(low_BTR, adapter.b_OR, {}) * adapter.scale;
}

Tensor attention_of_documents(const Kernels& by, const Tensor& qkv_BTE, const Attending& how) {
  const std::vector<Tensor> parts = qkv_BTE.split(qkv_BTE.size(2) / 3, 2);
  if (takes_documents(by, parts[0], how)) return by.grouped_attention(parts[0], parts[1], parts[2], how);
  const Kernels& kernels = of_any_length(by, qkv_BTE, how);
  return one_by_one(qkv_BTE, qkv_BTE.size(2) / 3, how,
                    [&](std::int64_t begin, std::int64_t count, const Attending& alone) {
                      return kernels.attention(row_range(qkv_BTE, begin, count), alone.heads, alone.dropout, alone.key);
                    });
}

Tensor attention_of_documents(const Kernels& by, const Tensor& q_BTE, const Tensor& k_BTF, const Tensor& v_BTF,
                              const Attending& how) {
  if (takes_documents(by, q_BTE, how)) return by.grouped_attention(q_BTE, k_BTF, v_BTF, how);
  const Kernels& kernels = of_any_length(by, q_BTE, how);
  return one_by_one(q_BTE, q_BTE.size(2), how, [&](std::int64_t begin, std::int64_t count, const Attending& alone) {
    return kernels.grouped_attention(row_range(q_BTE, begin, count), row_range(k_BTF, begin, count),
                                     row_range(v_BTF, begin, count), alone);
  });
}

AttentionInputs attention_inputs(const Kernels& by, const Tensor& x_BTC, const AttentionLayer& layer) {
  const std::int64_t D = layer.q.weight_OI.size(0) / layer.attending.heads;
  const auto [x, in_BTC] = before(by, x_BTC, layer.norm_C, layer.epsilon);
  const auto turned_heads = [&](const Projection& projection, const NormWeight& norm) {
    return turned(by, normalised(by, projected(by, in_BTC, projection), norm, layer.epsilon), D, layer);
  };
  // In this order: backward adds up the gradient of the input in the opposite one.
  const Tensor v_BTF = projected(by, in_BTC, layer.v);
  const Tensor k_BTF = turned_heads(layer.k, layer.k_norm);
  const Tensor q_BTE = turned_heads(layer.q, layer.q_norm);
  return {x, q_BTE, k_BTF, v_BTF};
}

Tensor attend(const Kernels& by, const Tensor& q_BTE, const Tensor& k_BTF, const Tensor& v_BTF, const Attending& how) {
  return how.documents.empty() ? (how.sinks_H.defined() ? plain() : by).grouped_attention(q_BTE, k_BTF, v_BTF, how)
                               : attention_of_documents(by, q_BTE, k_BTF, v_BTF, how);
}

Tensor attention_output(const Kernels& by, const Tensor& x_BTC, const Tensor& attended_BTE,
                        const AttentionLayer& layer) {
  return after(by, x_BTC, projected(by, attended_BTE, layer.o), layer.post_norm_C, layer.epsilon);
}

Tensor attention_layer(const Kernels& by, const Tensor& x_BTC, const AttentionLayer& layer) {
  const AttentionInputs in = attention_inputs(by, x_BTC, layer);
  return attention_output(by, in.x_BTC, attend(by, in.q_BTE, in.k_BTF, in.v_BTF, layer.attending), layer);
}

Tensor gated_layer(const Kernels& by, const Tensor& x_BTC, const GatedLayer& layer) {
  const auto [x, in_BTC] = before(by, x_BTC, layer.norm_C, layer.epsilon);
  const Tensor up_BTI = projected(by, in_BTC, layer.up), gate_BTI = projected(by, in_BTC, layer.gate);
  const Tensor inner_BTI = (layer.activation == Activation::silu ? by.swiglu : by.geglu)(gate_BTI, up_BTI);
  return after(by, x, projected(by, inner_BTI, layer.down), layer.post_norm_C, layer.epsilon);
}

}  // namespace zs::kernel

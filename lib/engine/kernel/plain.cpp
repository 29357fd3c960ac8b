// SPDX-License-Identifier: Apache-2.0
#include <torch/version.h>

#include <cmath>

#include "kernel/kernels.hpp"
#include "unit/arithmetic.hpp"
#include "unit/random.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;

/// Whether products of x are made of float32: it is of bfloat16, and the processor has no products of that.
bool widens(const Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kBFloat16 && unit::bfloat16_products().empty();
}
/// Whether the fused kernels compute a layer with this weight. They widen a part at a time: LibTorch's bfloat16 kernels
/// take many times as long there. Under autocast the weight is float32, and LibTorch rounds it.
bool widens(const Tensor& x, const Tensor& weight) { return widens(x) && weight.scalar_type() == x.scalar_type(); }
Tensor wide(const Tensor& x) { return widens(x) ? x.to(at::kFloat) : x; }
/// A product, converted back to the type of its factors.
Tensor narrowed(const Tensor& product, const Tensor& x) { return widens(x) ? product.to(x.scalar_type()) : product; }

Tensor linear(const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
  if (widens(x_BTI, weight_IO)) return fused().linear(x_BTI, weight_IO, bias_O);
  const std::int64_t inner = weight_IO.size(0), outer = weight_IO.size(1);
  return at::addmm(bias_O, x_BTI.view({-1, inner}), weight_IO).view({x_BTI.size(0), x_BTI.size(1), outer});
}

Normed norm(const Tensor& x_BTC, const Tensor& weight_C, const Tensor& bias_C, double epsilon) {
  return {x_BTC, at::layer_norm(x_BTC, weight_C.sizes(), weight_C, bias_C, epsilon)};
}

Tensor linear_gelu(const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
  return at::gelu(linear(x_BTI, weight_IO, bias_O), "tanh");
}

Tensor linear_add(const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O, const Tensor& residual_BTO) {
  return residual_BTO + linear(x_BTI, weight_IO, bias_O);
}

Tensor capped(const Tensor& x, double cap) { return cap > 0 ? (x / cap).tanh() * cap : x; }

/// Softmax of the scores of a query, in which a sink, where there is one, takes its share.
Tensor softmax_beside(const Tensor& scores_BHTT, const Tensor& sinks_H) {
  if (!sinks_H.defined()) return at::softmax(scores_BHTT, -1);
  const std::int64_t B = scores_BHTT.size(0), H = scores_BHTT.size(1), T = scores_BHTT.size(2);
  const Tensor sinks_BHT1 = sinks_H.to(scores_BHTT.scalar_type()).view({1, H, 1, 1}).expand({B, H, T, 1});
  return at::softmax(at::cat({scores_BHTT, sinks_BHT1}, -1), -1).narrow(-1, 0, T);
}

/// Attention of queries, keys and values with the same number of heads: [B, T, H*D].
Tensor attend(const Tensor& all_q_BHTD, const Tensor& k_BHTD, const Tensor& v_BHTD, const Attending& how,
              bool causal = true) {
  const std::int64_t B = all_q_BHTD.size(0), H = all_q_BHTD.size(1), T = all_q_BHTD.size(2), D = all_q_BHTD.size(3);
#if TORCH_VERSION_MAJOR >= 2  // before, LibTorch had none, and our GPUs need a later one
  if (all_q_BHTD.is_cuda() && how.dropout == 0 && how.scale == 0 && how.cap == 0 && how.window == 0 &&
      !how.sinks_H.defined()) {
    return at::scaled_dot_product_attention(all_q_BHTD, k_BHTD, v_BHTD, {}, 0, causal)  // a deterministic kernel
        .transpose(1, 2)
        .reshape({B, T, H * D});
  }
#endif
  const Tensor q_BHTD = wide(all_q_BHTD * (how.scale > 0 ? how.scale : 1 / std::sqrt(static_cast<double>(D))));
  Tensor scores_BHTT = capped(at::matmul(q_BHTD, wide(k_BHTD).transpose(-2, -1)), how.cap);
  if (causal) scores_BHTT = scores_BHTT + at::full({T, T}, -INFINITY, q_BHTD.options()).triu_(1);
  if (how.window > 0) scores_BHTT = scores_BHTT + at::full({T, T}, -INFINITY, q_BHTD.options()).tril_(-how.window);
  const Tensor weights_BHTT = unit::dropout(softmax_beside(scores_BHTT, how.sinks_H), how.dropout, how.key);
  return narrowed(at::matmul(weights_BHTT, wide(v_BHTD)), all_q_BHTD).transpose(1, 2).reshape({B, T, H * D});
}

Tensor attention(const Tensor& qkv_BTE, std::int64_t heads, double dropout, std::uint64_t key) {
  const std::int64_t B = qkv_BTE.size(0), T = qkv_BTE.size(1), H = heads, D = qkv_BTE.size(2) / 3 / H;
  const Tensor qkv_3BHTD = qkv_BTE.view({B, T, 3, H, D}).permute({2, 0, 3, 1, 4});
  return attend(qkv_3BHTD[0], qkv_3BHTD[1], qkv_3BHTD[2], {heads, dropout, key});
}

Tensor grouped_attention(const Tensor& q_BTE, const Tensor& k_BTF, const Tensor& v_BTF, const Attending& how) {
  const std::int64_t B = q_BTE.size(0), T = q_BTE.size(1), H = how.heads, D = q_BTE.size(2) / H, K = k_BTF.size(2) / D;
  const auto for_all = [&](const Tensor& of_BTF) {
    const Tensor of_BKTD = of_BTF.view({B, T, K, D}).transpose(1, 2);
    return K == H ? of_BKTD : of_BKTD.unsqueeze(2).expand({B, K, H / K, T, D}).reshape({B, H, T, D});
  };
  return attend(q_BTE.view({B, T, H, D}).transpose(1, 2), for_all(k_BTF), for_all(v_BTF), how);
}

Tensor bidirectional_attention(const Tensor& q_BTE, const Tensor& k_BTE, const Tensor& v_BTE, std::int64_t heads,
                               double dropout, std::uint64_t key) {
  const std::int64_t B = q_BTE.size(0), T = q_BTE.size(1), D = q_BTE.size(2) / heads;
  const auto of_heads = [&](const Tensor& x_BTE) { return x_BTE.view({B, T, heads, D}).transpose(1, 2); };
  return attend(of_heads(q_BTE), of_heads(k_BTE), of_heads(v_BTE), {heads, dropout, key}, /*causal=*/false);
}

Normed rms_norm(const Tensor& x_BTC, const NormWeight& weight, double epsilon) {
  const Tensor wide_BTC = x_BTC.to(at::kFloat);  // as Hugging Face's, also of 16 bits
  const Tensor scaled_BTC = wide_BTC * at::rsqrt(wide_BTC.pow(2).mean(-1, /*keepdim=*/true) + epsilon);
  const Tensor weight_C = weight.factor();
  return {x_BTC, (weight_C * scaled_BTC.to(weight_C.scalar_type())).to(x_BTC.scalar_type())};
}

Tensor project(const Tensor& x_BTI, const Tensor& weight_OI, const Tensor& bias_O) {
  if (widens(x_BTI, weight_OI)) return fused().project(x_BTI, weight_OI, bias_O);
  const Tensor x_NI = x_BTI.view({-1, weight_OI.size(1)}), weight_IO = weight_OI.t();
  const Tensor y_NO = bias_O.defined() ? at::addmm(bias_O, x_NI, weight_IO) : at::mm(x_NI, weight_IO);
  return y_NO.view({x_BTI.size(0), x_BTI.size(1), weight_OI.size(0)});
}

Tensor swiglu(const Tensor& gate_BTI, const Tensor& up_BTI) { return at::silu(gate_BTI) * up_BTI; }

Tensor geglu(const Tensor& gate_BTI, const Tensor& up_BTI) { return at::gelu(gate_BTI, "tanh") * up_BTI; }

Tensor rotate(const Tensor& x_BTE, const Tensor& cos_TR, const Tensor& sin_TR) {
  const std::int64_t B = x_BTE.size(0), T = x_BTE.size(1), R = cos_TR.size(1);
  const Tensor x_BTH2R = x_BTE.view({B, T, -1, 2, R}), a_BTHR = x_BTH2R.select(3, 0), b_BTHR = x_BTH2R.select(3, 1);
  const auto of_heads = [&](const Tensor& of_TR) { return of_TR.narrow(0, 0, T).unsqueeze(1).to(x_BTE.options()); };
  const Tensor cos_T1R = of_heads(cos_TR), sin_T1R = of_heads(sin_TR);
  return at::stack({a_BTHR * cos_T1R - b_BTHR * sin_T1R, b_BTHR * cos_T1R + a_BTHR * sin_T1R}, 3).view(x_BTE.sizes());
}

Tensor embedding(const Tensor& weight_VC, const Tensor& tokens_BT) { return at::embedding(weight_VC, tokens_BT); }

Tensor loss(const Tensor& x_NC, const Tensor& weight_VC, const Tensor& targets_N, double cap) {
  const Tensor logits_NV = project(x_NC.unsqueeze(0), weight_VC, {}).squeeze(0);
  return at::cross_entropy_loss(capped(logits_NV.to(at::kFloat), cap), targets_N);
}

Tensor attention_of(const Tensor& x_BTC, const AttentionLayer& layer) { return attention_layer(plain(), x_BTC, layer); }
Tensor gated_of(const Tensor& x_BTC, const GatedLayer& layer) { return gated_layer(plain(), x_BTC, layer); }

}  // namespace

const Kernels& plain() {
  static constexpr Kernels kernels = {
      norm,         linear,  linear_gelu, linear_add, attention, embedding,         loss,
      rms_norm,     project, swiglu,      geglu,      rotate,    grouped_attention, bidirectional_attention,
      attention_of, gated_of};
  return kernels;
}

}  // namespace zs::kernel

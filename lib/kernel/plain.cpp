// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernel/kernels.hpp"
#include "unit/random.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;

Tensor linear(const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
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

Tensor attention(const Tensor& qkv_BTE, std::int64_t heads, double dropout, std::uint64_t key) {
  const std::int64_t B = qkv_BTE.size(0), T = qkv_BTE.size(1), C = qkv_BTE.size(2) / 3, H = heads, D = C / H;
  const Tensor qkv_3BHTD = qkv_BTE.view({B, T, 3, H, D}).permute({2, 0, 3, 1, 4});
  if (qkv_BTE.is_cuda() && dropout == 0) {  // LibTorch's own choice among its deterministic kernels
    return at::scaled_dot_product_attention(qkv_3BHTD[0], qkv_3BHTD[1], qkv_3BHTD[2], {}, 0, /*is_causal=*/true)
        .transpose(1, 2)
        .reshape({B, T, C});
  }
  const Tensor q_BHTD = qkv_3BHTD[0] * (1 / std::sqrt(static_cast<double>(D)));
  const Tensor mask_TT = at::full({T, T}, -INFINITY, qkv_BTE.options()).triu_(1);
  const Tensor scores_BHTT = at::matmul(q_BHTD, qkv_3BHTD[1].transpose(-2, -1)) + mask_TT;
  const Tensor weights_BHTT = unit::dropout(at::softmax(scores_BHTT, -1), dropout, key);
  return at::matmul(weights_BHTT, qkv_3BHTD[2]).transpose(1, 2).reshape({B, T, C});
}

Tensor embedding(const Tensor& weight_VC, const Tensor& tokens_BT) { return at::embedding(weight_VC, tokens_BT); }

Tensor loss(const Tensor& x_NC, const Tensor& weight_VC, const Tensor& targets_N) {
  return at::cross_entropy_loss(at::mm(x_NC, weight_VC.t()).to(at::kFloat), targets_N);
}

}  // namespace

const Kernels& plain() {
  static constexpr Kernels kernels = {norm, linear, linear_gelu, linear_add, attention, embedding, loss};
  return kernels;
}

}  // namespace zs::kernel

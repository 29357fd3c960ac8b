// SPDX-License-Identifier: Apache-2.0
// Causal self-attention on a GPU without storing its weights: for 16 bits cuDNN's, with the deterministic backward; for
// float32 and TF32 that of zs (cuda_flash.hpp), since LibTorch's deterministic one takes three times as long. Shapes: B
// samples, T tokens, H heads of queries and K of keys and values, of D numbers; C = H D, E = (H + 2 K) D.
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel::cuda {

/// Groups of H / K query heads share keys and values.
struct HeadCounts {
  std::int64_t H, K;
};

struct AttentionShape {
  std::int64_t B, T, H, K, D;
  at::ScalarType type;
  auto operator<=>(const AttentionShape&) const = default;

  static AttentionShape of(const at::Tensor& qkv_BTE, HeadCounts heads) {
    return {qkv_BTE.size(0),      qkv_BTE.size(1), heads.H, heads.K, qkv_BTE.size(2) / (heads.H + 2 * heads.K),
            qkv_BTE.scalar_type()};
  }
};

/// True if the functions below support the shape: kernels exist, and their workspace is at most 4 GiB.
bool attention_fits(const AttentionShape& shape);

struct Attended {
  at::Tensor out_BTC;
  at::Tensor stats_BHT1;  ///< float32: log of the sum of exponentials, for backward (for float32 inputs: log2)
};
Attended attention_forward(const at::Tensor& qkv_BTE, HeadCounts heads);
/// The gradient by qkv. The same bits in every run; cuDNN's graph has a workspace of B H T T.
at::Tensor attention_backward(const at::Tensor& qkv_BTE, const Attended& attended, const at::Tensor& dout_BTC,
                              HeadCounts heads);

}  // namespace zs::kernel::cuda

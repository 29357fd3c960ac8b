// SPDX-License-Identifier: Apache-2.0
// Causal self-attention on a GPU without storing its weights. 16 bits use cuDNN with the deterministic backward, or
// FlashAttention-3's, which is faster, on Hopper GPUs (cuda_hopper.hpp). float32 and TF32 use zs's kernels
// (cuda_flash.hpp), since LibTorch's deterministic backward takes three times as long. Shapes: B samples, T tokens, H
// heads of queries and K of keys and values, of D numbers; C = H D, E = (H + 2 K) D.
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel::cuda {

/// Groups of H / K query heads share keys and values; the rest as in Attending.
struct Heads {
  std::int64_t H, K;
  double scale = 0;
  std::int64_t window = 0;
  at::Tensor sinks_H{};
  double cap = 0;
};

struct AttentionShape {
  std::int64_t B, T, H, K, D;
  at::ScalarType type;
  auto operator<=>(const AttentionShape&) const = default;

  /// The shape of q_BTE, or of qkv_BTE, which has H + 2 K heads (`all`).
  static AttentionShape of(const at::Tensor& q_BTE, const Heads& heads, std::int64_t joined) {
    return {q_BTE.size(0), q_BTE.size(1), heads.H, heads.K, q_BTE.size(2) / joined, q_BTE.scalar_type()};
  }
  static AttentionShape of(const at::Tensor& qkv_BTE, const Heads& heads) {
    return of(qkv_BTE, heads, heads.H + 2 * heads.K);
  }
};

/// True if the functions below support the shape.
bool attention_fits(const AttentionShape& shape, const Heads& heads);

/// Queries [B, T, H*D], keys and values [B, T, K*D]; in each the numbers of a token follow each other.
struct QueriesKeysValues {
  at::Tensor q_BTE, k_BTF, v_BTF;
};

struct Attended {
  at::Tensor out_BTC;
  at::Tensor stats_BHT1;  ///< float32: log of the sum of exponentials, for backward (for float32 inputs: log2)
};
Attended attention_forward(const at::Tensor& qkv_BTE, const Heads& heads);
/// The gradient by qkv. The same bits in every run. cuDNN's graph has a workspace of 2 B H T T bytes: the gradient of
/// longer samples is added up, in float32, of tiles of queries and keys.
at::Tensor attention_backward(const at::Tensor& qkv_BTE, const Attended& attended, const at::Tensor& dout_BTC,
                              const Heads& heads);
/// The same for three separate tensors: contiguous, of 16 bits.
Attended attention_forward(const QueriesKeysValues& qkv, const Heads& heads);
QueriesKeysValues attention_backward(const QueriesKeysValues& qkv, const Attended& attended, const at::Tensor& dout_BTC,
                                     const Heads& heads);
/// The same where scores have a cap (cuda_capped.cpp), of bfloat16; backward in `made`.
Attended capped_forward(const QueriesKeysValues& qkv, const Heads& heads);
void capped_backward(const QueriesKeysValues& qkv, const Attended& attended, const at::Tensor& dout_BTC,
                     const Heads& heads, const QueriesKeysValues& made);
/// The gradient of the sinks: float32[H].
at::Tensor gradient_of_sinks(const Attended& attended, const at::Tensor& dout_BTC, const Heads& heads);

}  // namespace zs::kernel::cuda

// SPDX-License-Identifier: Apache-2.0
// Causal attention whose scores have a cap, on a GPU, in bfloat16: products of blocks of queries with the keys that
// they see, and the kernels in between. Shapes as in attention.hpp; N pairs of a sample and a head of keys, G = H / K.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace zs::kernel::cuda {

/// Heads as a product takes them: packed_NRGD has R rows of G heads for each of `count` pairs, from pair `begin` on;
/// rows from T on are zeros. In memory a token's heads follow each other, tokens are `token` numbers apart, and samples
/// `sample`.
struct PackedHeads {
  std::int64_t begin, count, K, G, T, R, D, sample, token;
};
void pack_heads(const __nv_bfloat16* x_BTE, __nv_bfloat16* packed_NRGD, const PackedHeads& heads, cudaStream_t stream);
/// The inverse: rows from T on are dropped.
void unpack_heads(const __nv_bfloat16* packed_NRGD, __nv_bfloat16* x_BTE, const PackedHeads& heads,
                  cudaStream_t stream);

/// How scores become weights: a score s becomes cap tanh(s scale / cap), 0 < cap <= kMostCap. Scores of `pairs` pairs,
/// from number `pair` on: [pairs, T G, ld], of which the kernels read and write queries [query, query + queries) and
/// keys [key, key + keys). A query does not see keys after it, nor keys `window` (unless 0) or more before it.
struct CappedRows {
  std::int64_t pair, pairs, K, G, T, D, query, queries, key, keys, ld, window;
  float scale, cap;
};
/// Sums of exponentials of numbers up to this stay in the range of float32: no maximum is subtracted first.
inline constexpr double kMostCap = 60;
/// Replaces scores by weights; stats_BHT = the logs of the sums of exponentials.
void capped_softmax(__nv_bfloat16* scores, float* stats_BHT, const CappedRows& rows, cudaStream_t stream);
/// Replaces dweights by weights, and scores by their gradient.
void capped_softmax_backward(__nv_bfloat16* scores, __nv_bfloat16* dweights, const float* stats_BHT,
                             const __nv_bfloat16* out_BTC, const __nv_bfloat16* dout_NTGD, const CappedRows& rows,
                             cudaStream_t stream);

}  // namespace zs::kernel::cuda

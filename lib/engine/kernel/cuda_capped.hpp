// SPDX-License-Identifier: Apache-2.0
// Causal attention whose scores have a cap, on a GPU, in bfloat16: a block of queries at a time, whose scores are there
// between two products, and never all. Shapes as in attention.hpp.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace zs::kernel::cuda {

/// How N rows of scores become weights. Row n has the scores of query begin + n % queries with the first `keys` keys; a
/// score s becomes cap tanh(s scale / cap). A query does not see keys after it, nor keys `window` (unless 0) or more
/// before it.
struct CappedRows {
  std::int64_t N, queries, keys, begin, window;
  float scale, cap;
};
/// Replaces scores by weights; stats_N = the logs of the sums of exponentials.
void capped_softmax(__nv_bfloat16* scores, float* stats_N, const CappedRows& rows, cudaStream_t stream);
/// Replaces scores by weights again, and dweights by the gradient of the scores; dots_N = out times dout.
void capped_softmax_backward(__nv_bfloat16* scores, __nv_bfloat16* dweights, const float* stats_N, const float* dots_N,
                             const CappedRows& rows, cudaStream_t stream);

}  // namespace zs::kernel::cuda

// SPDX-License-Identifier: Apache-2.0
// The second half of a sum over rows: adds the partial sums that each tile of rows left. For nvcc.
#pragma once
#include "kernel/cuda_pack.hpp"

namespace zs::kernel::cuda {

/// to[c] += the sum over tiles of partial[tile][c]; `to` is first[0, C) and, from
/// column C on, second[0, C). The lanes of a block share the tiles of a column:
/// each adds every kTileLanes-th in order, and their sums are added in order.
inline constexpr int kTileLanes = 32;
template <typename T>
__global__ void add_tiles_kernel(const float* __restrict__ partial, int columns, int tiles, T* __restrict__ first,
                                 T* __restrict__ second, int C) {
  __shared__ float sums[kTileLanes][kWarp + 1];
  const int c = blockIdx.x * kWarp + threadIdx.x;
  float sum = 0;
  if (c < columns) {
    for (int tile = threadIdx.y; tile < tiles; tile += kTileLanes)
      sum += partial[static_cast<std::int64_t>(tile) * columns + c];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= columns) return;
  for (int lane = 1; lane < kTileLanes; ++lane) sum += sums[lane][threadIdx.x];
  T* const to = c < C ? first + c : second + (c - C);
  *to = narrow<T>(wide(*to) + sum);
}

/// `second` may be null if there is one result.
template <typename T>
void add_tiles(const float* partial, std::int64_t tiles, T* first, T* second, std::int64_t C, cudaStream_t stream) {
  const dim3 block(kWarp, kTileLanes);
  const std::int64_t columns = second ? 2 * C : C;
  add_tiles_kernel<T><<<static_cast<unsigned>((columns + kWarp - 1) / kWarp), block, 0, stream>>>(
      partial, static_cast<int>(columns), static_cast<int>(tiles), first, second, static_cast<int>(C));
  check("sum of tiles");
}

}  // namespace zs::kernel::cuda

// SPDX-License-Identifier: Apache-2.0
// A block has one row; each thread adds its keys in order, and the block its threads in a fixed order.
#include "kernel/cuda_capped.hpp"

#include "kernel/cuda_pack.hpp"

namespace zs::kernel::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp, kPack = Pack<__nv_bfloat16>::kSize;

/// The keys that a row's query sees: [first, last].
struct Seen {
  int first, last;
  __device__ Seen(const CappedRows& rows, int row) {
    last = static_cast<int>(rows.begin) + row % static_cast<int>(rows.queries);
    first = rows.window > 0 ? max(0, last - static_cast<int>(rows.window) + 1) : 0;
  }
  __device__ bool has(int key) const { return key >= first && key <= last; }
};

__device__ inline float capped(__nv_bfloat16 score, const CappedRows& rows) {
  return rows.cap * tanh_for<__nv_bfloat16>(wide(score) * rows.scale / rows.cap);
}

__global__ void __launch_bounds__(kThreads)
    forward_kernel(__nv_bfloat16* __restrict__ scores, float* __restrict__ stats_N, CappedRows rows) {
  __shared__ float maxima[kWarps], sums[kWarps];
  const int row = static_cast<int>(blockIdx.x), keys = static_cast<int>(rows.keys);
  const Seen seen(rows, row);
  __nv_bfloat16* const at = scores + static_cast<std::int64_t>(row) * keys;
  const auto each = [&](auto take) {
    for (int i = static_cast<int>(threadIdx.x) * kPack; i < keys; i += kThreads * kPack) {
      const Pack<__nv_bfloat16> s = load(at + i);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (seen.has(i + j)) take(capped(s.value[j], rows));
      }
    }
  };
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  float most = -INFINITY, sum = 0;
  each([&](float x) { most = fmaxf(most, x); });
  most = warp_max(most);
  if (lane == 0) maxima[warp] = most;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) most = fmaxf(most, maxima[w]);
  each([&](float x) { sum += __expf(x - most); });
  sum = warp_sum(sum);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += sums[w];
  const float stat = most + logf(sum);
  if (threadIdx.x == 0) stats_N[row] = stat;
  for (int i = static_cast<int>(threadIdx.x) * kPack; i < keys; i += kThreads * kPack) {
    Pack<__nv_bfloat16> s = load(at + i);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      s.value[j] = narrow<__nv_bfloat16>(seen.has(i + j) ? __expf(capped(s.value[j], rows) - stat) : 0.0F);
    store(at + i, s);
  }
}

__global__ void __launch_bounds__(kThreads)
    backward_kernel(__nv_bfloat16* __restrict__ scores, __nv_bfloat16* __restrict__ dweights,
                    const float* __restrict__ stats_N, const float* __restrict__ dots_N, CappedRows rows) {
  const int row = static_cast<int>(blockIdx.x), keys = static_cast<int>(rows.keys);
  const Seen seen(rows, row);
  const std::int64_t begin = static_cast<std::int64_t>(row) * keys;
  const float stat = stats_N[row], dot = dots_N[row];
  for (int i = static_cast<int>(threadIdx.x) * kPack; i < keys; i += kThreads * kPack) {
    Pack<__nv_bfloat16> s = load(scores + begin + i), d = load(dweights + begin + i);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float x = capped(s.value[j], rows), weight = seen.has(i + j) ? __expf(x - stat) : 0;
      const float slope = 1 - x / rows.cap * (x / rows.cap);
      d.value[j] = narrow<__nv_bfloat16>(weight * (wide(d.value[j]) - dot) * slope * rows.scale);
      s.value[j] = narrow<__nv_bfloat16>(weight);
    }
    store(scores + begin + i, s);
    store(dweights + begin + i, d);
  }
}

}  // namespace

void capped_softmax(__nv_bfloat16* scores, float* stats_N, const CappedRows& rows, cudaStream_t stream) {
  require_packs(rows.keys, sizeof *scores);
  forward_kernel<<<static_cast<unsigned>(rows.N), kThreads, 0, stream>>>(scores, stats_N, rows);
  check("capped attention");
}

void capped_softmax_backward(__nv_bfloat16* scores, __nv_bfloat16* dweights, const float* stats_N, const float* dots_N,
                             const CappedRows& rows, cudaStream_t stream) {
  require_packs(rows.keys, sizeof *scores);
  backward_kernel<<<static_cast<unsigned>(rows.N), kThreads, 0, stream>>>(scores, dweights, stats_N, dots_N, rows);
  check("backward of capped attention");
}

}  // namespace zs::kernel::cuda

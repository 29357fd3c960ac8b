// SPDX-License-Identifier: Apache-2.0
// A block has one row; each thread adds its keys in order, and the block its threads in a fixed order.
#include "kernel/cuda_capped.hpp"

#include "kernel/cuda_pack.hpp"

namespace zs::kernel::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp, kPack = Pack<__nv_bfloat16>::kSize;

__device__ inline float block_sum(float x, float (&sums)[kWarps]) {
  x = warp_sum(x);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = sums[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) x += sums[w];
  return x;
}

/// The row of a block: where it lies, and the keys that its query sees, [first, last] of those that are computed.
struct Row {
  std::int64_t scores, stat, out, dout;
  int first, last;
  __device__ explicit Row(const CappedRows& rows) {
    const std::int64_t G = rows.G, g = blockIdx.x % G, t = rows.query + blockIdx.x / G, n = blockIdx.y;
    const std::int64_t pair = rows.pair + n, head = pair % rows.K * G + g;
    scores = (n * rows.T + t) * G * rows.ld + g * rows.ld + rows.key;
    stat = (pair * G + g) * rows.T + t;
    out = ((pair / rows.K * rows.T + t) * rows.K * G + head) * rows.D;
    dout = ((n * rows.T + t) * G + g) * rows.D;
    first = static_cast<int>(rows.window > 0 ? t - rows.window + 1 - rows.key : 0);
    last = static_cast<int>(t - rows.key);
  }
  __device__ bool sees(int key) const { return key >= first && key <= last; }
};

__device__ inline float capped(__nv_bfloat16 score, const CappedRows& rows) {
  return rows.cap * tanh_for<__nv_bfloat16>(wide(score) * rows.scale / rows.cap);
}

/// The exponentials of a thread's pack of scores; 0 where a key is not seen.
struct Exponentials {
  float value[kPack];
  __device__ void set(const __nv_bfloat16* scores, int key, const Row& row, const CappedRows& rows) {
    const Pack<__nv_bfloat16> s = load(scores + key);
#pragma unroll
    for (int j = 0; j < kPack; ++j) value[j] = row.sees(key + j) ? __expf(capped(s.value[j], rows)) : 0;
  }
};

/// A thread holds kHeld packs of the row; 0: it computes them a second time.
template <int kHeld>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(__nv_bfloat16* __restrict__ scores_of_tile, float* __restrict__ stats_BHT, CappedRows rows) {
  __shared__ float sums[kWarps];
  const Row row(rows);
  __nv_bfloat16* const scores = scores_of_tile + row.scores;
  constexpr int kUnrolled = kHeld > 0 ? kHeld : 1, kStep = kThreads * kPack;
  const int keys = static_cast<int>(rows.keys), steps = kHeld > 0 ? kHeld : (keys + kStep - 1) / kStep;
  Exponentials held[kUnrolled];
  float sum = 0;
#pragma unroll kUnrolled
  for (int n = 0; n < steps; ++n) {
    Exponentials& here = held[kHeld > 0 ? n : 0];
    const int key = n * kStep + static_cast<int>(threadIdx.x) * kPack;
    if (key >= keys) continue;
    here.set(scores, key, row, rows);
#pragma unroll
    for (int j = 0; j < kPack; ++j) sum += here.value[j];
  }
  sum = block_sum(sum, sums);
  if (threadIdx.x == 0) stats_BHT[row.stat] = logf(sum);
  const float share = 1 / sum;
#pragma unroll kUnrolled
  for (int n = 0; n < steps; ++n) {
    Exponentials& here = held[kHeld > 0 ? n : 0];
    const int key = n * kStep + static_cast<int>(threadIdx.x) * kPack;
    if (key >= keys) continue;
    if (kHeld == 0) here.set(scores, key, row, rows);
    Pack<__nv_bfloat16> weights;
#pragma unroll
    for (int j = 0; j < kPack; ++j) weights.value[j] = narrow<__nv_bfloat16>(here.value[j] * share);
    store(scores + key, weights);
  }
}

__global__ void __launch_bounds__(kThreads)
    backward_kernel(__nv_bfloat16* __restrict__ scores, __nv_bfloat16* __restrict__ dweights,
                    const float* __restrict__ stats_BHT, const __nv_bfloat16* __restrict__ out_BTC,
                    const __nv_bfloat16* __restrict__ dout_NTGD, CappedRows rows) {
  __shared__ float sums[kWarps];
  const Row row(rows);
  float dot = 0;
  for (int d = static_cast<int>(threadIdx.x); d < rows.D; d += kThreads)
    dot = fmaf(wide(out_BTC[row.out + d]), wide(dout_NTGD[row.dout + d]), dot);
  dot = block_sum(dot, sums);
  const float stat = stats_BHT[row.stat];
  for (int i = static_cast<int>(threadIdx.x) * kPack; i < rows.keys; i += kThreads * kPack) {
    const Pack<__nv_bfloat16> s = load(scores + row.scores + i), d = load(dweights + row.scores + i);
    Pack<__nv_bfloat16> dscores, weights;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float x = capped(s.value[j], rows), weight = row.sees(i + j) ? __expf(x - stat) : 0;
      const float slope = 1 - x / rows.cap * (x / rows.cap);
      dscores.value[j] =
          narrow<__nv_bfloat16>(row.sees(i + j) ? weight * (wide(d.value[j]) - dot) * slope * rows.scale : 0);
      weights.value[j] = narrow<__nv_bfloat16>(weight);
    }
    store(scores + row.scores + i, dscores);
    store(dweights + row.scores + i, weights);
  }
}

/// A thread copies one pack of pair blockIdx.y.
template <bool kBack>
__global__ void __launch_bounds__(kThreads)
    pack_kernel(__nv_bfloat16* __restrict__ x_BTE, __nv_bfloat16* __restrict__ packed_NRGD, PackedHeads heads) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kPack;
  const std::int64_t n = blockIdx.y, pair = heads.begin + n, d = i % heads.D, g = i / heads.D % heads.G,
                     t = i / heads.D / heads.G;
  if (t >= heads.R) return;
  __nv_bfloat16* const packed = packed_NRGD + n * heads.R * heads.G * heads.D + i;
  __nv_bfloat16* const x =
      x_BTE + pair / heads.K * heads.sample + t * heads.token + (pair % heads.K * heads.G + g) * heads.D + d;
  if (kBack) {
    if (t < heads.T) store(x, load(packed));
  } else {
    Pack<__nv_bfloat16> zeros{};
    store(packed, t < heads.T ? load(x) : zeros);
  }
}

template <bool kBack>
void pack(__nv_bfloat16* x_BTE, __nv_bfloat16* packed_NRGD, const PackedHeads& heads, cudaStream_t stream) {
  require_packs(heads.D, sizeof *x_BTE);
  require_packs(heads.token, sizeof *x_BTE);
  const dim3 grid(static_cast<unsigned>(tiles(heads.R * heads.G * heads.D, kThreads * kPack)),
                  static_cast<unsigned>(heads.count));
  pack_kernel<kBack><<<grid, kThreads, 0, stream>>>(x_BTE, packed_NRGD, heads);
  check("heads of capped attention");
}

dim3 grid_of(const CappedRows& rows) {
  require_packs(rows.keys, sizeof(__nv_bfloat16));
  require_packs(rows.key, sizeof(__nv_bfloat16));
  require_packs(rows.ld, sizeof(__nv_bfloat16));
  return {static_cast<unsigned>(rows.queries * rows.G), static_cast<unsigned>(rows.pairs)};
}

}  // namespace

void pack_heads(const __nv_bfloat16* x_BTE, __nv_bfloat16* packed_NRGD, const PackedHeads& heads, cudaStream_t stream) {
  pack<false>(const_cast<__nv_bfloat16*>(x_BTE), packed_NRGD, heads, stream);
}

void unpack_heads(const __nv_bfloat16* packed_NRGD, __nv_bfloat16* x_BTE, const PackedHeads& heads,
                  cudaStream_t stream) {
  pack<true>(x_BTE, const_cast<__nv_bfloat16*>(packed_NRGD), heads, stream);
}

void capped_softmax(__nv_bfloat16* scores, float* stats_BHT, const CappedRows& rows, cudaStream_t stream) {
  const std::int64_t held = tiles(rows.keys, kThreads * kPack);
  const auto kernel = held <= 1   ? forward_kernel<1>
                      : held <= 2 ? forward_kernel<2>
                      : held <= 4 ? forward_kernel<4>
                      : held <= 8 ? forward_kernel<8>
                                  : forward_kernel<0>;
  kernel<<<grid_of(rows), kThreads, 0, stream>>>(scores, stats_BHT, rows);
  check("capped attention");
}

void capped_softmax_backward(__nv_bfloat16* scores, __nv_bfloat16* dweights, const float* stats_BHT,
                             const __nv_bfloat16* out_BTC, const __nv_bfloat16* dout_NTGD, const CappedRows& rows,
                             cudaStream_t stream) {
  backward_kernel<<<grid_of(rows), kThreads, 0, stream>>>(scores, dweights, stats_BHT, out_BTC, dout_NTGD, rows);
  check("backward of capped attention");
}

}  // namespace zs::kernel::cuda

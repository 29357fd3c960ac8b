// SPDX-License-Identifier: Apache-2.0
// A block has 4 warps and owns kTile rows (queries, or keys and values); each warp has 16 of them. Other rows pass
// through shared memory in tiles of kTile; the next tile is fetched during the computation of one. Products are
// mma.m16n8k8 of TF32 (PTX ISA, "Matrix fragments for mma.m16n8k8"): of a 16 x 8 result, lane 4 g + t holds rows g and
// g + 8, columns 2 t and 2 t + 1. As the left factor of the next product such a result would need columns t and t + 4.
// The order of the summation index is free, so the right factor's rows are taken as 2 t and 2 t + 1 instead.
#include <cuda_pipeline.h>

#include <cmath>
#include <type_traits>

#include "kernel/cuda_flash.hpp"
#include "kernel/cuda_pack.hpp"

namespace zs::kernel::cuda {
namespace {

constexpr int kTile = 64, kWarps = kTile / 16, kThreads = kWarps * kWarp;
constexpr int kColumns = kTile / 8;  // groups of 8 columns

/// Floats from a row of a tile in shared memory to the next: the lanes of a warp meet in no bank.
template <int D>
constexpr int kStride = D + 4;
template <int D>
constexpr int kTileFloats = kTile* kStride<D>;

/// N factors of a product: as TF32, and what TF32 leaves of a float32.
template <bool kTf32, int N>
struct Factors {
  unsigned big[N], small[kTf32 ? 1 : N];

  __device__ void set(int i, float x) {
    if constexpr (kTf32) {
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(big[i]) : "f"(x));
    } else {
      big[i] = (__float_as_uint(x) + 0x1000U) & 0xffffe000U;  // to nearest
      small[i] = __float_as_uint(x - __uint_as_float(big[i]));
    }
  }
};

__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

constexpr int kGroup = 4;  // results under way at once: one product waits for the one before into the same
template <bool kTf32>
__device__ inline void multiply(float (*c)[4], const Factors<kTf32, 4>& a, const Factors<kTf32, 2> (&b)[kGroup]) {
  if constexpr (!kTf32) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) mma(c[j], a.small, b[j].big);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) mma(c[j], a.big, b[j].small);
  }
#pragma unroll
  for (int j = 0; j < kGroup; ++j) mma(c[j], a.big, b[j].big);
}

__device__ inline int lane_row() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
__device__ inline int lane_column() { return static_cast<int>(threadIdx.x) % 4; }
/// The first of a warp's 16 rows in its block's tile.
__device__ inline int warp_row() { return static_cast<int>(threadIdx.x) / kWarp * 16; }

/// c[16][kTile] = a[16][D] times the transpose of x[kTile][D], both in shared memory.
template <int D, bool kTf32>
__device__ inline void times_transposed(float (&c)[kColumns][4], const float* a, const float* x) {
  const int g = lane_row(), t = lane_column();
#pragma unroll
  for (int j = 0; j < kColumns; ++j) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
#pragma unroll 2
  for (int k = 0; k < D; k += 8) {
    Factors<kTf32, 4> left;
    left.set(0, a[g * kStride<D> + k + t]);
    left.set(1, a[(g + 8) * kStride<D> + k + t]);
    left.set(2, a[g * kStride<D> + k + t + 4]);
    left.set(3, a[(g + 8) * kStride<D> + k + t + 4]);
#pragma unroll
    for (int n = 0; n < kColumns; n += kGroup) {
      Factors<kTf32, 2> right[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        right[j].set(0, x[((n + j) * 8 + g) * kStride<D> + k + t]);
        right[j].set(1, x[((n + j) * 8 + g) * kStride<D> + k + t + 4]);
      }
      multiply<kTf32>(c + n, left, right);
    }
  }
}

/// c[16][D] += a[16][kTile], a result of times_transposed(), times x[kTile][D] in shared memory.
template <int D, bool kTf32>
__device__ inline void add_times(float (&c)[D / 8][4], const float (&a)[kColumns][4], const float* x) {
  const int g = lane_row(), t = lane_column();
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    Factors<kTf32, 4> left;
    left.set(0, a[k][0]);
    left.set(1, a[k][2]);
    left.set(2, a[k][1]);
    left.set(3, a[k][3]);
#pragma unroll
    for (int n = 0; n < D / 8; n += kGroup) {
      Factors<kTf32, 2> right[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        right[j].set(0, x[(k * 8 + 2 * t) * kStride<D> + (n + j) * 8 + g]);
        right[j].set(1, x[(k * 8 + 2 * t + 1) * kStride<D> + (n + j) * 8 + g]);
      }
      multiply<kTf32>(c + n, left, right);
    }
  }
}

/// Begins to fetch rows [first, first + kTile) of a head, `ld` floats apart; rows from T on are zeros.
template <int D>
__device__ inline void fetch(float* tile, const float* rows, int first, int T, std::int64_t ld) {
  constexpr int kPacks = D / 4;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kPacks; i += kThreads) {
    const int row = i / kPacks, at = i % kPacks * 4;
    const bool inside = first + row < T;
    __pipeline_memcpy_async(tile + row * kStride<D> + at, rows + (inside ? (first + row) * ld : 0) + at, 16,
                            inside ? 0 : 16);
  }
}
/// The same of numbers, one a row.
__device__ inline void fetch(float* to, const float* from, int first, int T) {
  for (int row = static_cast<int>(threadIdx.x); row < kTile; row += kThreads) {
    const bool inside = first + row < T;
    __pipeline_memcpy_async(to + row, from + (inside ? first + row : 0), 4, inside ? 0 : 4);
  }
}
/// Waits, with the whole block, until only the newest `left` groups of copies are pending.
__device__ inline void arrived(int left) {
  __pipeline_wait_prior(left);
  __syncthreads();
}

/// A warp's 16 rows of a result, times `factor`, to rows `ld` apart; those from T on are left out.
template <int D>
__device__ inline void write(const float (&c)[D / 8][4], float factor, float* rows, int first, int T, std::int64_t ld) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + warp_row() + lane_row() + 8 * half;
    if (row >= T) continue;
#pragma unroll
    for (int j = 0; j < D / 8; ++j)
      *reinterpret_cast<float2*>(rows + row * ld + j * 8 + 2 * lane_column()) =
          make_float2(c[j][2 * half] * factor, c[j][2 * half + 1] * factor);
  }
}

/// The addresses of a block's head.
template <int D>
struct Head {
  std::int64_t of_T;         ///< rows of a number a token
  std::int64_t qkv, qkv_ld;  ///< queries; keys are `part` further on, values twice
  std::int64_t out, part;    ///< the output, of rows `part` apart
  __device__ Head(int T, int H) {
    const std::int64_t sample = blockIdx.y / H, head = blockIdx.y % H;
    part = static_cast<std::int64_t>(H) * D;
    qkv_ld = 3 * part;
    of_T = static_cast<std::int64_t>(blockIdx.y) * T;
    qkv = sample * T * qkv_ld + head * D;
    out = sample * T * part + head * D;
  }
};

template <int D, bool kTf32>
__global__ void __launch_bounds__(kThreads) forward_kernel(const float* __restrict__ qkv, float* __restrict__ out,
                                                           float* __restrict__ stats, int T, int H, float scale) {
  extern __shared__ __align__(16) float shared[];
  float *const q_TD = shared, *const k_TD = q_TD + kTileFloats<D>, *const v_TD = k_TD + kTileFloats<D>;
  const Head<D> head(T, H);
  const float *const q = qkv + head.qkv, *const k = q + head.part, *const v = k + head.part;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTile;  // the longest rows first
  const int g = lane_row(), t = lane_column();

  fetch<D>(q_TD, q, first, T, head.qkv_ld);
  fetch<D>(k_TD, k, 0, T, head.qkv_ld);
  __pipeline_commit();
  fetch<D>(v_TD, v, 0, T, head.qkv_ld);
  __pipeline_commit();
  float sum_out[D / 8][4] = {};
  float most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  for (int begin = 0; begin <= first; begin += kTile) {
    arrived(1);
    float p[kColumns][4];
    times_transposed<D, kTf32>(p, q_TD + warp_row() * kStride<D>, k_TD);
    arrived(0);
    if (begin < first) fetch<D>(k_TD, k, begin + kTile, T, head.qkv_ld);
    __pipeline_commit();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_row() + g + 8 * half;
      float now = most[half];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& x = p[j][2 * half + i];
          x = begin == first && j * 8 + 2 * t + i > row ? -INFINITY : x * scale;
          now = fmaxf(now, x);
        }
      }
      now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 1));
      now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 2));
      const float past = exp2f(most[half] - now);
      most[half] = now;
      sum[half] *= past;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) sum[half] += p[j][2 * half + i] = exp2f(p[j][2 * half + i] - now);
      }
#pragma unroll
      for (int j = 0; j < D / 8; ++j) sum_out[j][2 * half] *= past, sum_out[j][2 * half + 1] *= past;
    }
    add_times<D, kTf32>(sum_out, p, v_TD);
    __syncthreads();
    if (begin < first) fetch<D>(v_TD, v, begin + kTile, T, head.qkv_ld);
    __pipeline_commit();
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sum[half] += __shfl_xor_sync(0xffffffff, sum[half], 1);
    sum[half] += __shfl_xor_sync(0xffffffff, sum[half], 2);
#pragma unroll
    for (int j = 0; j < D / 8; ++j) sum_out[j][2 * half] /= sum[half], sum_out[j][2 * half + 1] /= sum[half];
    const int row = first + warp_row() + g + 8 * half;
    if (t == 0 && row < T) stats[head.of_T + row] = most[half] + log2f(sum[half]);
  }
  write<D>(sum_out, 1, out + head.out, first, T, head.part);
}

/// dots[b][h][t] = out times dout, over the numbers of a head: what a weight's gradient is measured from. A warp a row.
template <int D>
__global__ void dots_kernel(const float* __restrict__ out, const float* __restrict__ dout, float* __restrict__ dots,
                            std::int64_t rows, int T, int H) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;  // of [B, T, H]
  if (row >= rows) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < D; i += kWarp) sum = fmaf(out[row * D + i + threadIdx.x], dout[row * D + i + threadIdx.x], sum);
  sum = warp_sum(sum);
  const std::int64_t token = row / H;
  if (threadIdx.x == 0) dots[(token / T * H + row % H) * T + token % T] = sum;
}

/// The gradients of a tile of keys and values, from the queries at and after them. Results are [keys, queries].
template <int D, bool kTf32>
__global__ void __launch_bounds__(kThreads, D <= 64 ? 3 : 1)
    backward_kv_kernel(const float* __restrict__ qkv, const float* __restrict__ stats, const float* __restrict__ dots,
                       const float* __restrict__ dout, float* __restrict__ dqkv, int T, int H, float scale) {
  extern __shared__ __align__(16) float shared[];
  float *const k_TD = shared, *const v_TD = k_TD + kTileFloats<D>, *const q_TD = v_TD + kTileFloats<D>,
               *const dout_TD = q_TD + kTileFloats<D>, *const stats_T = dout_TD + kTileFloats<D>,
               *const dots_T = stats_T + kTile;
  const Head<D> head(T, H);
  const float *const q = qkv + head.qkv, *const d = dout + head.out;
  const int first = static_cast<int>(blockIdx.x) * kTile;
  const int g = lane_row(), t = lane_column();
  const auto fetch_queries = [&](int begin) {
    if (begin < T) {
      fetch<D>(q_TD, q, begin, T, head.qkv_ld);
      fetch(stats_T, stats + head.of_T, begin, T);
      fetch(dots_T, dots + head.of_T, begin, T);
    }
    __pipeline_commit();
  };
  const auto fetch_dout = [&](int begin) {
    if (begin < T) fetch<D>(dout_TD, d, begin, T, head.part);
    __pipeline_commit();
  };
  fetch<D>(k_TD, q + head.part, first, T, head.qkv_ld);
  fetch<D>(v_TD, q + 2 * head.part, first, T, head.qkv_ld);
  fetch_queries(first);
  fetch_dout(first);
  float dk[D / 8][4] = {}, dv[D / 8][4] = {};
  for (int begin = first; begin < T; begin += kTile) {
    arrived(1);
    float p[kColumns][4], ds[kColumns][4];
    times_transposed<D, kTf32>(p, k_TD + warp_row() * kStride<D>, q_TD);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int query = j * 8 + 2 * t + i % 2, key = warp_row() + g + i / 2 * 8;
        p[j][i] = begin == first && key > query ? 0 : exp2f(fmaf(p[j][i], scale, -stats_T[query]));
      }
    }
    arrived(0);
    times_transposed<D, kTf32>(ds, v_TD + warp_row() * kStride<D>, dout_TD);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) ds[j][i] = p[j][i] * (ds[j][i] - dots_T[j * 8 + 2 * t + i % 2]);
    }
    add_times<D, kTf32>(dk, ds, q_TD);
    __syncthreads();
    fetch_queries(begin + kTile);
    add_times<D, kTf32>(dv, p, dout_TD);
    __syncthreads();
    fetch_dout(begin + kTile);
  }
  float* const to = dqkv + head.qkv + head.part;
  write<D>(dk, scale * static_cast<float>(M_LN2), to, first, T, head.qkv_ld);
  write<D>(dv, 1, to + head.part, first, T, head.qkv_ld);
}

/// The gradient of a tile of queries, from the keys and values at and before them.
template <int D, bool kTf32>
__global__ void __launch_bounds__(kThreads)
    backward_q_kernel(const float* __restrict__ qkv, const float* __restrict__ stats, const float* __restrict__ dots,
                      const float* __restrict__ dout, float* __restrict__ dqkv, int T, int H, float scale) {
  extern __shared__ __align__(16) float shared[];
  float *const q_TD = shared, *const dout_TD = q_TD + kTileFloats<D>, *const k_TD = dout_TD + kTileFloats<D>,
               *const v_TD = k_TD + kTileFloats<D>;
  const Head<D> head(T, H);
  const float *const q = qkv + head.qkv, *const k = q + head.part, *const v = k + head.part;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTile;  // the longest rows first
  const int g = lane_row(), t = lane_column();
  const auto fetch_tile = [&](float* tile, const float* rows, int begin) {
    if (begin <= first) fetch<D>(tile, rows, begin, T, head.qkv_ld);
    __pipeline_commit();
  };
  fetch<D>(q_TD, q, first, T, head.qkv_ld);
  fetch<D>(dout_TD, dout + head.out, first, T, head.part);
  fetch_tile(v_TD, v, 0);
  fetch_tile(k_TD, k, 0);
  float log_sum[2], dot[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + warp_row() + g + 8 * half;
    log_sum[half] = row < T ? stats[head.of_T + row] : 0, dot[half] = row < T ? dots[head.of_T + row] : 0;
  }
  float dq[D / 8][4] = {};
  for (int begin = 0; begin <= first; begin += kTile) {
    arrived(1);
    float p[kColumns][4], ds[kColumns][4];
    times_transposed<D, kTf32>(ds, dout_TD + warp_row() * kStride<D>, v_TD);
    arrived(0);
    fetch_tile(v_TD, v, begin + kTile);
    times_transposed<D, kTf32>(p, q_TD + warp_row() * kStride<D>, k_TD);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = j * 8 + 2 * t + i % 2, query = warp_row() + g + i / 2 * 8;
        const float weight = begin == first && key > query ? 0 : exp2f(fmaf(p[j][i], scale, -log_sum[i / 2]));
        ds[j][i] = weight * (ds[j][i] - dot[i / 2]);
      }
    }
    add_times<D, kTf32>(dq, ds, k_TD);
    __syncthreads();
    fetch_tile(k_TD, k, begin + kTile);
  }
  write<D>(dq, scale * static_cast<float>(M_LN2), dqkv + head.qkv, first, T, head.qkv_ld);
}

/// Runs a kernel with one block for each tile of rows and each head, and this number of tiles of shared memory.
template <int D, typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), int shared_tiles, const FlashShape& shape, cudaStream_t stream,
            Arguments... arguments) {
  const int bytes = (shared_tiles * kTileFloats<D> + 2 * kTile) * static_cast<int>(sizeof(float));
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid(static_cast<unsigned>(tiles(shape.T, kTile)), static_cast<unsigned>(shape.B * shape.H));
  // Exponentials are powers of 2.
  const auto scale = static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(D)));
  kernel<<<grid, kThreads, static_cast<unsigned>(bytes), stream>>>(arguments..., static_cast<int>(shape.T),
                                                                   static_cast<int>(shape.H), scale);
  check("attention");
}

/// Calls f with the size of a head and whether factors are TF32.
template <typename F>
void with_kind(std::int64_t D, bool tf32, F f) {
  const auto of_size = [&](auto size) {
    if (tf32)
      f(size, std::true_type());
    else
      f(size, std::false_type());
  };
  switch (D) {
    case 32:
      return of_size(std::integral_constant<int, 32>());
    case 64:
      return of_size(std::integral_constant<int, 64>());
    case 128:
      return of_size(std::integral_constant<int, 128>());
    default:
      throw Error("a GPU's float32 attention has no kernel for heads of " + std::to_string(D));
  }
}

}  // namespace

bool flash_fits(std::int64_t D) { return D == 32 || D == 64 || D == 128; }

void flash_forward(const float* qkv, float* out, float* stats, const FlashShape& shape, bool tf32,
                   cudaStream_t stream) {
  with_kind(shape.D, tf32,
            [&](auto size, auto fast) { launch<size>(forward_kernel<size, fast>, 3, shape, stream, qkv, out, stats); });
}

void flash_backward(const float* qkv, const float* out, const float* stats, const float* dout, float* dqkv,
                    float* scratch, const FlashShape& shape, bool tf32, cudaStream_t stream) {
  with_kind(shape.D, tf32, [&](auto size, auto fast) {
    constexpr int kRows = 8;
    const std::int64_t rows = shape.B * shape.T * shape.H;
    dots_kernel<size><<<static_cast<unsigned>(tiles(rows, kRows)), dim3(kWarp, kRows), 0, stream>>>(
        out, dout, scratch, rows, static_cast<int>(shape.T), static_cast<int>(shape.H));
    check("attention");
    const float* const dots = scratch;
    launch<size>(backward_kv_kernel<size, fast>, 4, shape, stream, qkv, stats, dots, dout, dqkv);
    launch<size>(backward_q_kernel<size, fast>, 4, shape, stream, qkv, stats, dots, dout, dqkv);
  });
}

}  // namespace zs::kernel::cuda

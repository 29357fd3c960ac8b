// SPDX-License-Identifier: Apache-2.0
// Layer norm, GELU and sums of columns. How sums keep one order: a warp adds its lanes by a fixed butterfly; a block
// owns a fixed tile of rows and leaves one row of partial sums; a second kernel adds the tiles by their index.
#include <algorithm>

#include "kernel/cuda_pack.hpp"
#include "kernel/cuda_rows.hpp"
#include "kernel/cuda_tiles.hpp"

namespace zs::kernel::cuda {
namespace {

// ---- layer norm -----------------------------------------------------------------------------------------------------
constexpr int kNormWarps = 8;

/// One warp a row, which stays in registers: kPacks packs a lane.
template <typename T, int kPacks>
__global__ void norm_kernel(const T* __restrict__ x_NC, const T* __restrict__ weight_C, const T* __restrict__ bias_C,
                            T* __restrict__ y_NC, float* __restrict__ mean_N, float* __restrict__ rstd_N, int N, int C,
                            float epsilon) {
  constexpr int kPack = Pack<T>::kSize;
  const int row = blockIdx.x * kNormWarps + threadIdx.y;
  if (row >= N) return;
  const std::int64_t begin = static_cast<std::int64_t>(row) * C;
  const int packs = C / kPack;
  float x[kPacks][kPack];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int pack = i * kWarp + threadIdx.x;
    if (pack >= packs) break;
    const Pack<T> v = load(x_NC + begin + pack * kPack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) sum += x[i][j] = wide(v.value[j]);
  }
  const float mean = warp_sum(sum) / C;
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (i * kWarp + static_cast<int>(threadIdx.x) >= packs) break;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      x[i][j] -= mean;
      squares = fmaf(x[i][j], x[i][j], squares);
    }
  }
  const float rstd = rsqrtf(warp_sum(squares) / C + epsilon);
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int pack = i * kWarp + threadIdx.x;
    if (pack >= packs) break;
    const Pack<T> w = load(weight_C + pack * kPack), b = load(bias_C + pack * kPack);
    Pack<T> out;
#pragma unroll
    for (int j = 0; j < kPack; ++j) out.value[j] = narrow<T>(fmaf(x[i][j] * rstd, wide(w.value[j]), wide(b.value[j])));
    store(y_NC + begin + pack * kPack, out);
  }
  if (threadIdx.x == 0) mean_N[row] = mean, rstd_N[row] = rstd;
}

/// Rows of one tile of the weight's and bias's gradient: with many rows, the size at which all tiles run at once.
int norm_rows(std::int64_t N) { return N >= 1 << 15 ? 128 : 64; }

/// Partial sums of tile t: scratch[t][0, C) for the weight, scratch[t][C, 2C) for the bias. A warp takes every
/// kNormWarps-th row of the tile and adds its rows in order; the warps are added in order. With kStages > 1 rows come
/// into shared memory while those before them are computed; else all that a row needs is asked of memory before
/// anything is computed. A processor has two tiles under way where their sums leave it the registers.
template <typename T, int kPacks, int kStages>
__global__ void __launch_bounds__(kNormWarps* kWarp, kPacks* Pack<T>::kSize <= 24 ? 2 : 1)
    norm_backward_kernel(const T* __restrict__ x_NC, const T* __restrict__ weight_C, const float* __restrict__ mean_N,
                         const float* __restrict__ rstd_N, const T* __restrict__ dy_NC,
                         const T* __restrict__ residual_NC, T* __restrict__ dx_NC, float* __restrict__ scratch, int N,
                         int C, int tile) {
  constexpr int kPack = Pack<T>::kSize, kOperands = 3;
  // Rows on their way: [warp][stage][operand][C]. Then the sums of the warps, [2C] each, or with one stage of all of
  // them so far: number j of pack p at j * packs + p, so that the lanes of a warp meet in no bank.
  extern __shared__ __align__(16) float shared[];
  const int packs = C / kPack, warp = threadIdx.y, lane = threadIdx.x;
  T* const mine = reinterpret_cast<T*>(shared) + static_cast<std::int64_t>(warp) * kStages * kOperands * C;
  const auto place = [&](int stage, int operand) { return mine + (stage * kOperands + operand) * C; };
  const int first = blockIdx.x * tile + warp, end = min(N, (static_cast<int>(blockIdx.x) + 1) * tile);
  const auto ask = [&](int row, int stage) {
    if (row < end) {
      const std::int64_t begin = static_cast<std::int64_t>(row) * C;
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const int at = (i * kWarp + lane) * kPack;
        if (at < C) {
          start_copy(place(stage, 0) + at, x_NC + begin + at);
          start_copy(place(stage, 1) + at, dy_NC + begin + at);
          if (residual_NC) start_copy(place(stage, 2) + at, residual_NC + begin + at);
        }
      }
    }
    end_of_group();
  };
  float dweight[kPacks * kPack], dbias[kPacks * kPack];
#pragma unroll
  for (int i = 0; i < kPacks * kPack; ++i) dweight[i] = dbias[i] = 0;
  if constexpr (kStages > 1) {
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) ask(first + stage * kNormWarps, stage);
  }
  // Other data of a row is requested together with the row before.
  float its_mean = 0, its_rstd = 0;
  const auto ask_statistics = [&](int row) {
    if (row < end) its_mean = mean_N[row], its_rstd = rstd_N[row];
  };
  ask_statistics(first);
  int stage = 0;
  for (int row = first; row < end; row += kNormWarps) {
    const std::int64_t begin = static_cast<std::int64_t>(row) * C;
    const float mean = its_mean, rstd = its_rstd;
    ask_statistics(row + kNormWarps);
    constexpr int kHeld = kStages > 1 ? 1 : kPacks;  // a row in shared memory is read twice, and leaves sums their room
    Pack<T> xs[kHeld], dys[kHeld], pasts[kHeld];
    const T *x_C = x_NC + begin, *dy_C = dy_NC + begin, *past_C = residual_NC + (residual_NC ? begin : 0);
    const auto read = [&](int i, bool past) {
      const int at = (i * kWarp + lane) * kPack;
      xs[i % kHeld] = load(x_C + at), dys[i % kHeld] = load(dy_C + at);
      if (past && residual_NC) pasts[i % kHeld] = load(past_C + at);
    };
    if constexpr (kStages > 1) {
      ask(row + (kStages - 1) * kNormWarps, (stage + kStages - 1) % kStages);
      wait_for_copies<kStages - 1>();
      x_C = place(stage, 0), dy_C = place(stage, 1), past_C = place(stage, 2);
      stage = (stage + 1) % kStages;
    } else {
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        if (i * kWarp + lane < packs) read(i, true);
      }
    }
    float sum = 0, dot = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = i * kWarp + lane;
      if (pack < packs) {
        if constexpr (kStages > 1) read(i, false);
        const Pack<T> w = load(weight_C + pack * kPack);
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          const float hat = (wide(xs[i % kHeld].value[j]) - mean) * rstd, dy = wide(dys[i % kHeld].value[j]);
          const float d = dy * wide(w.value[j]);
          sum += d;
          dot = fmaf(d, hat, dot);
          dweight[i * kPack + j] = fmaf(dy, hat, dweight[i * kPack + j]);
          dbias[i * kPack + j] += dy;
        }
      }
    }
    sum = warp_sum(sum) / C, dot = warp_sum(dot) / C;
    if constexpr (kStages > 1) asm volatile("" ::: "memory");  // else the compiler would keep the row
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = i * kWarp + lane;
      if (pack < packs) {
        if constexpr (kStages > 1) read(i, true);
        const Pack<T> w = load(weight_C + pack * kPack);
        Pack<T> out;
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          const float hat = (wide(xs[i % kHeld].value[j]) - mean) * rstd;
          const float dx = (fmaf(wide(dys[i % kHeld].value[j]), wide(w.value[j]), -sum) - hat * dot) * rstd;
          out.value[j] = narrow<T>(residual_NC ? wide(pasts[i % kHeld].value[j]) + dx : dx);
        }
        store(dx_NC + begin + pack * kPack, out);
      }
    }
  }
  // Rows have gone from shared memory, and each warp has its sums there; or they add to those before them, by turns.
  constexpr int kPlaces = kStages > 1 ? kNormWarps : 1;
  __syncthreads();
#pragma unroll
  for (int turn = 0; turn < kNormWarps / kPlaces; ++turn) {
    if (kPlaces > 1 || warp == turn) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const int pack = i * kWarp + lane;
        if (pack < packs) {
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            float *const w = shared + (kPlaces > 1 ? warp * 2 * C : 0) + j * packs + pack, *const b = w + C;
            *w = turn == 0 ? dweight[i * kPack + j] : *w + dweight[i * kPack + j];
            *b = turn == 0 ? dbias[i * kPack + j] : *b + dbias[i * kPack + j];
          }
        }
      }
    }
    __syncthreads();
  }
  for (int c = warp * kWarp + lane; c < C; c += kNormWarps * kWarp) {
    const float* const from = shared + c % kPack * packs + c / kPack;
    float weight = from[0], bias = from[C];
#pragma unroll
    for (int each = 1; each < kPlaces; ++each) weight += from[each * 2 * C], bias += from[each * 2 * C + C];
    float* const to = scratch + static_cast<std::int64_t>(blockIdx.x) * 2 * C + c;
    to[0] = weight, to[C] = bias;
  }
}

/// Calls f with the number of packs of a row that each lane of a warp holds.
template <typename T, typename F>
void with_packs(std::int64_t C, F f) {
  switch (tiles(C / Pack<T>::kSize, kWarp)) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    case 4:
      return f(std::integral_constant<int, 4>());
    case 5:
      return f(std::integral_constant<int, 5>());
    case 6:
      return f(std::integral_constant<int, 6>());
    case 7:
      return f(std::integral_constant<int, 7>());
    case 8:
      return f(std::integral_constant<int, 8>());
    case 9:
    case 10:
      return f(std::integral_constant<int, 10>());
    case 11:
    case 12:
      return f(std::integral_constant<int, 12>());
    case 13:
    case 14:
    case 15:
    case 16:
      return f(std::integral_constant<int, 16>());
    default:
      throw Error("a GPU's layer norm takes rows of at most " + std::to_string(16 * kWarp * Pack<T>::kSize) +
                  " elements, not " + std::to_string(C));
  }
}

// ---- GELU and sums of columns ---------------------------------------------------------------------------------------
template <typename T>
__global__ void gelu_kernel(const T* __restrict__ x, T* __restrict__ y, std::int64_t n) {
  constexpr int kPack = Pack<T>::kSize;
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kPack;
  if (i + kPack <= n) {
    const Pack<T> v = load(x + i);
    Pack<T> out;
    for (int j = 0; j < kPack; ++j) out.value[j] = narrow<T>(gelu_of<T>(wide(v.value[j])));
    store(y + i, out);
    return;
  }
  for (std::int64_t j = i; j < n; ++j) y[j] = narrow<T>(gelu_of<T>(wide(x[j])));
}

constexpr int kSumRows = 256, kSumLanes = 8;

/// Tile (rows blockIdx.y, columns blockIdx.x): kSumLanes rows at a time, each lane adds its rows in order, the lanes
/// are added in order. With kGelu the summand is dy times GELU's slope at x, and is written to dx.
template <typename T, bool kGelu>
__global__ void column_sum_kernel(const T* __restrict__ x_NC, const T* __restrict__ dy_NC, T* __restrict__ dx_NC,
                                  float* __restrict__ partial, int N, int C) {
  constexpr int kPack = Pack<T>::kSize;
  __shared__ float sums[kSumLanes][kWarp * kPack];
  const int c = (blockIdx.x * kWarp + threadIdx.x) * kPack;
  float sum[kPack] = {};
  if (c < C) {
    const int end = min(N, (static_cast<int>(blockIdx.y) + 1) * kSumRows);
    const auto at = [&](int row) { return static_cast<std::int64_t>(row) * C + c; };
    const auto add = [&](int row, Pack<T> v, const Pack<T>& dy) {
      if constexpr (kGelu) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) v.value[j] = narrow<T>(wide(dy.value[j]) * gelu_slope<T>(wide(v.value[j])));
        store(dx_NC + at(row), v);
      }
#pragma unroll
      for (int j = 0; j < kPack; ++j) sum[j] += wide(v.value[j]);
    };
    // This number of rows is requested from memory before the first one is computed.
    constexpr int kAtOnce = kGelu ? 2 : 4;
    int row = blockIdx.y * kSumRows + threadIdx.y;
    for (; row + (kAtOnce - 1) * kSumLanes < end; row += kAtOnce * kSumLanes) {
      Pack<T> v[kAtOnce], dy[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        v[i] = load(x_NC + at(row + i * kSumLanes));
        if constexpr (kGelu) dy[i] = load(dy_NC + at(row + i * kSumLanes));
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) add(row + i * kSumLanes, v[i], dy[i]);
    }
    for (; row < end; row += kSumLanes) add(row, load(x_NC + at(row)), load((kGelu ? dy_NC : x_NC) + at(row)));
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) sums[threadIdx.y][threadIdx.x * kPack + j] = sum[j];
  __syncthreads();
  const int thread = threadIdx.y * kWarp + threadIdx.x, first = blockIdx.x * kWarp * kPack;
  for (int i = thread; i < kWarp * kPack && first + i < C; i += kSumLanes * kWarp) {
    float sum = sums[0][i];
    for (int lane = 1; lane < kSumLanes; ++lane) sum += sums[lane][i];
    partial[static_cast<std::int64_t>(blockIdx.y) * C + first + i] = sum;
  }
}

template <typename T, bool kGelu>
void column_sums(const T* x_NC, const T* dy_NC, T* dx_NC, T* sum_C, float* scratch, std::int64_t N, std::int64_t C,
                 cudaStream_t stream) {
  require_packs(C, sizeof(T));
  const dim3 block(kWarp, kSumLanes);
  const dim3 grid(static_cast<unsigned>(tiles(C, kWarp * Pack<T>::kSize)), static_cast<unsigned>(tiles(N, kSumRows)));
  column_sum_kernel<T, kGelu>
      <<<grid, block, 0, stream>>>(x_NC, dy_NC, dx_NC, scratch, static_cast<int>(N), static_cast<int>(C));
  check("sum of columns");
  add_tiles<T>(scratch, tiles(N, kSumRows), sum_C, nullptr, C, stream);
}

}  // namespace

template <typename T>
void norm(const T* x_NC, const T* weight_C, const T* bias_C, T* y_NC, float* mean_N, float* rstd_N, std::int64_t N,
          std::int64_t C, float epsilon, cudaStream_t stream) {
  require_packs(C, sizeof(T));
  const dim3 block(kWarp, kNormWarps);
  with_packs<T>(C, [&](auto packs) {
    norm_kernel<T, packs><<<static_cast<unsigned>(tiles(N, kNormWarps)), block, 0, stream>>>(
        x_NC, weight_C, bias_C, y_NC, mean_N, rstd_N, static_cast<int>(N), static_cast<int>(C), epsilon);
  });
  check("layer norm");
}

std::int64_t norm_backward_scratch(std::int64_t N, std::int64_t C) { return tiles(N, norm_rows(N)) * 2 * C; }

template <typename T>
void norm_backward(const T* x_NC, const T* weight_C, const float* mean_N, const float* rstd_N, const T* dy_NC,
                   const T* residual_NC, T* dx_NC, T* dweight_C, T* dbias_C, float* scratch, std::int64_t N,
                   std::int64_t C, cudaStream_t stream) {
  require_packs(C, sizeof(T));
  const dim3 block(kWarp, kNormWarps);
  const int tile = norm_rows(N);
  const std::int64_t sums = 2 * C * static_cast<std::int64_t>(sizeof(float));
  const auto rows = [&](int stages) { return kNormWarps * stages * 3 * C * static_cast<std::int64_t>(sizeof(T)); };
  with_packs<T>(C, [&](auto packs) {
    const auto run = [&](auto kernel, std::int64_t bytes) {
      const auto shared = static_cast<unsigned>(bytes);
      if (shared > 48 * 1024)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
      kernel<<<static_cast<unsigned>(tiles(N, tile)), block, shared, stream>>>(
          x_NC, weight_C, mean_N, rstd_N, dy_NC, residual_NC, dx_NC, scratch, static_cast<int>(N), static_cast<int>(C),
          tile);
    };
    // Bytes of shared memory that a processor keeps for itself, for each block.
    constexpr std::int64_t kOwn = 1024;
    constexpr int kBlocks = packs * Pack<T>::kSize <= 24 ? 2 : 1;
    const std::int64_t bytes = std::max(rows(2), kNormWarps * sums);
    if (kBlocks * (bytes + kOwn) <= shared_memory())
      run(norm_backward_kernel<T, packs, 2>, bytes);
    else
      run(norm_backward_kernel<T, packs, 1>, sums);
  });
  check("backward of layer norm");
  add_tiles(scratch, tiles(N, tile), dweight_C, dbias_C, C, stream);
}

template <typename T>
void gelu(const T* x, T* y, std::int64_t n, cudaStream_t stream) {
  constexpr int kThreads = 256;
  gelu_kernel<T><<<static_cast<unsigned>(tiles(n, kThreads * Pack<T>::kSize)), kThreads, 0, stream>>>(x, y, n);
  check("GELU");
}

std::int64_t column_sum_scratch(std::int64_t N, std::int64_t C) { return tiles(N, kSumRows) * C; }

template <typename T>
void gelu_backward(const T* x_NC, const T* dy_NC, T* dx_NC, T* dbias_C, float* scratch, std::int64_t N, std::int64_t C,
                   cudaStream_t stream) {
  column_sums<T, true>(x_NC, dy_NC, dx_NC, dbias_C, scratch, N, C, stream);
}
template <typename T>
void column_sum(const T* x_NC, T* sum_C, float* scratch, std::int64_t N, std::int64_t C, cudaStream_t stream) {
  column_sums<T, false>(x_NC, nullptr, nullptr, sum_C, scratch, N, C, stream);
}

#define ZS_FOR(T)                                                                                                \
  template void norm<T>(const T*, const T*, const T*, T*, float*, float*, std::int64_t, std::int64_t, float,     \
                        cudaStream_t);                                                                           \
  template void norm_backward<T>(const T*, const T*, const float*, const float*, const T*, const T*, T*, T*, T*, \
                                 float*, std::int64_t, std::int64_t, cudaStream_t);                              \
  template void gelu<T>(const T*, T*, std::int64_t, cudaStream_t);                                               \
  template void gelu_backward<T>(const T*, const T*, T*, T*, float*, std::int64_t, std::int64_t, cudaStream_t);  \
  template void column_sum<T>(const T*, T*, float*, std::int64_t, std::int64_t, cudaStream_t)
ZS_FOR(float);
ZS_FOR(__nv_bfloat16);
#undef ZS_FOR

}  // namespace zs::kernel::cuda

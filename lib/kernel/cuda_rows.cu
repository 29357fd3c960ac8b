// SPDX-License-Identifier: Apache-2.0
// How sums keep one order: a warp adds its lanes by a fixed butterfly; a block owns a fixed tile of rows and leaves one
// row of partial sums; a second kernel adds the tiles by their index.
#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "kernel/cuda_rows.hpp"

namespace zs::kernel::cuda {
namespace {

constexpr int kWarp = 32;

void check(const char* what) {
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    throw Error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// 16 bytes of T.
template <typename T>
struct Pack {
  static constexpr int kSize = 16 / sizeof(T);
  alignas(16) T value[kSize];
};

__device__ inline float wide(float x) { return x; }
__device__ inline float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T>
__device__ inline T narrow(float x) {
  if constexpr (sizeof(T) == 2)
    return __float2bfloat16_rn(x);
  else
    return x;
}

__device__ inline float warp_sum(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffff, x, offset);
  return x;
}
__device__ inline float warp_max(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, offset));
  return x;
}

template <typename T>
__device__ inline Pack<T> load(const T* from) {
  return *reinterpret_cast<const Pack<T>*>(from);
}
template <typename T>
__device__ inline void store(T* to, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(to) = pack;
}

bool packs(std::int64_t C, std::size_t element) { return C * static_cast<std::int64_t>(element) % 16 == 0; }
void require_packs(std::int64_t C, std::size_t element) {
  if (!packs(C, element))
    throw Error("rows of " + std::to_string(C) +
                " elements are no whole number of 16 bytes: a GPU takes them from there");
}

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

constexpr int kNormRows = 128;  ///< rows of one tile of the weight's and bias's gradient

/// Partial sums of tile t: scratch[t][0, C) for the weight, scratch[t][C, 2C) for the bias. A warp takes every
/// kNormWarps-th row of the tile and adds its rows in order; the warps are added in order.
template <typename T, int kPacks>
__global__ void norm_backward_kernel(const T* __restrict__ x_NC, const T* __restrict__ weight_C,
                                     const float* __restrict__ mean_N, const float* __restrict__ rstd_N,
                                     const T* __restrict__ dy_NC, const T* __restrict__ residual_NC,
                                     T* __restrict__ dx_NC, float* __restrict__ scratch, int N, int C) {
  constexpr int kPack = Pack<T>::kSize;
  extern __shared__ float shared[];  // [2C], the sums of the warps so far
  const int packs = C / kPack;
  float dweight[kPacks * kPack], dbias[kPacks * kPack];
#pragma unroll
  for (int i = 0; i < kPacks * kPack; ++i) dweight[i] = dbias[i] = 0;
  const int end = min(N, (static_cast<int>(blockIdx.x) + 1) * kNormRows);
  for (int row = blockIdx.x * kNormRows + threadIdx.y; row < end; row += kNormWarps) {
    const std::int64_t begin = static_cast<std::int64_t>(row) * C;
    const float mean = mean_N[row], rstd = rstd_N[row];
    Pack<T> xs[kPacks], dys[kPacks];
    float sum = 0, dot = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = i * kWarp + threadIdx.x;
      if (pack >= packs) break;
      xs[i] = load(x_NC + begin + pack * kPack), dys[i] = load(dy_NC + begin + pack * kPack);
      const Pack<T> w = load(weight_C + pack * kPack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float hat = (wide(xs[i].value[j]) - mean) * rstd, dy = wide(dys[i].value[j]);
        const float d = dy * wide(w.value[j]);
        sum += d;
        dot = fmaf(d, hat, dot);
        dweight[i * kPack + j] = fmaf(dy, hat, dweight[i * kPack + j]);
        dbias[i * kPack + j] += dy;
      }
    }
    sum = warp_sum(sum) / C, dot = warp_sum(dot) / C;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = i * kWarp + threadIdx.x;
      if (pack >= packs) break;
      const Pack<T> w = load(weight_C + pack * kPack);
      Pack<T> past, out;
      if (residual_NC) past = load(residual_NC + begin + pack * kPack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float hat = (wide(xs[i].value[j]) - mean) * rstd;
        const float dx = (fmaf(wide(dys[i].value[j]), wide(w.value[j]), -sum) - hat * dot) * rstd;
        out.value[j] = narrow<T>(residual_NC ? wide(past.value[j]) + dx : dx);
      }
      store(dx_NC + begin + pack * kPack, out);
    }
  }
  for (int warp = 0; warp < kNormWarps; ++warp) {
    if (static_cast<int>(threadIdx.y) == warp) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const int pack = i * kWarp + threadIdx.x;
        if (pack >= packs) break;
        for (int j = 0; j < kPack; ++j) {
          float *const w = shared + pack * kPack + j, *const b = w + C;
          *w = warp == 0 ? dweight[i * kPack + j] : *w + dweight[i * kPack + j];
          *b = warp == 0 ? dbias[i * kPack + j] : *b + dbias[i * kPack + j];
        }
      }
    }
    __syncthreads();
  }
  const int thread = threadIdx.y * kWarp + threadIdx.x;
  for (int c = thread; c < 2 * C; c += kNormWarps * kWarp)
    scratch[static_cast<std::int64_t>(blockIdx.x) * 2 * C + c] = shared[c];
}

/// to[c] += the sum over tiles of partial[tile][c], where `to` is first[0, C) and, from column C on, second[0, C). The
/// lanes of a block share the tiles of a column: each adds every kTileLanes-th in order, and their sums are added in
/// order.
constexpr int kTileLanes = 32;
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

/// `second` may be null where there is one result.
template <typename T>
void add_tiles(const float* partial, std::int64_t tiles, T* first, T* second, std::int64_t C, cudaStream_t stream) {
  const dim3 block(kWarp, kTileLanes);
  const std::int64_t columns = second ? 2 * C : C;
  add_tiles_kernel<T><<<static_cast<unsigned>((columns + kWarp - 1) / kWarp), block, 0, stream>>>(
      partial, static_cast<int>(columns), static_cast<int>(tiles), first, second, static_cast<int>(C));
  check("sum of tiles");
}

std::int64_t tiles(std::int64_t n, std::int64_t rows) { return (n + rows - 1) / rows; }

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
constexpr float kRoot = 0.7978845608028654F, kCube = 0.044715F;  // sqrt(2/pi)

/// tanh; for 16-bit results by one fast exponential, whose error their rounding covers.
template <typename T>
__device__ inline float tanh_for(float x) {
  if constexpr (sizeof(T) == 2)
    return 1 - __fdividef(2.0F, 1 + __expf(2 * x));
  else
    return tanhf(x);
}
template <typename T>
__device__ inline float gelu_of(float x) {
  return 0.5F * x * (1 + tanh_for<T>(kRoot * fmaf(kCube * x * x, x, x)));
}
template <typename T>
__device__ inline float gelu_slope(float x) {
  const float t = tanh_for<T>(kRoot * fmaf(kCube * x * x, x, x));
  return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * kRoot * fmaf(3 * kCube * x, x, 1.0F);
}

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
__global__ void column_sum_kernel(const T* __restrict__ x_NC, const T* dy_NC, T* dx_NC, float* __restrict__ partial,
                                  int N, int C) {
  constexpr int kPack = Pack<T>::kSize;
  __shared__ float sums[kSumLanes][kWarp * kPack];
  const int c = (blockIdx.x * kWarp + threadIdx.x) * kPack;
  float sum[kPack] = {};
  if (c < C) {
    const int end = min(N, (static_cast<int>(blockIdx.y) + 1) * kSumRows);
    for (int row = blockIdx.y * kSumRows + threadIdx.y; row < end; row += kSumLanes) {
      const std::int64_t at = static_cast<std::int64_t>(row) * C + c;
      Pack<T> v = load(x_NC + at);
      if constexpr (kGelu) {
        const Pack<T> dy = load(dy_NC + at);
#pragma unroll
        for (int j = 0; j < kPack; ++j) v.value[j] = narrow<T>(wide(dy.value[j]) * gelu_slope<T>(wide(v.value[j])));
        store(dx_NC + at, v);
      }
#pragma unroll
      for (int j = 0; j < kPack; ++j) sum[j] += wide(v.value[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) sums[threadIdx.y][threadIdx.x * kPack + j] = sum[j];
  __syncthreads();
  const int thread = threadIdx.y * kWarp + threadIdx.x, first = blockIdx.x * kWarp * kPack;
  for (int i = thread; i < kWarp * kPack && first + i < C; i += kSumLanes * kWarp) {
    float all = sums[0][i];
    for (int lane = 1; lane < kSumLanes; ++lane) all += sums[lane][i];
    partial[static_cast<std::int64_t>(blockIdx.y) * C + first + i] = all;
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

// ---- cross-entropy --------------------------------------------------------------------------------------------------
constexpr int kLossThreads = 1024;
constexpr float kLog2E = 1.4426950408889634F;

/// 2 to the x; values below the smallest normal number are 0.
__device__ inline float power(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// One block a row: its maximum, its sum of exponentials, then the gradient in place. The row's last V % kPack columns
/// belong to the first threads, one each.
template <typename T>
__global__ void __launch_bounds__(kLossThreads, 2)
    cross_entropy_kernel(T* __restrict__ logits_NV, std::int64_t ld, const std::int64_t* __restrict__ targets_N,
                         float* __restrict__ losses_N, float scale, int V) {
  constexpr int kPack = Pack<T>::kSize, kWarps = kLossThreads / kWarp;
  __shared__ float maxima[kWarps], sums[kWarps];
  T* const row = logits_NV + static_cast<std::int64_t>(blockIdx.x) * ld;
  const std::int64_t target = targets_N[blockIdx.x];
  const int thread = threadIdx.x, warp = thread / kWarp, lane = thread % kWarp, whole = V / kPack * kPack;
  const bool valid = target >= 0 && target < V;
  const float target_logit = valid ? wide(row[target]) : NAN;
  // Each thread keeps a running maximum (times log2 e) and the sum of exponentials under it.
  float top = -INFINITY, sum = 0;
  for (int i = thread * kPack; i < whole; i += kLossThreads * kPack) {
    const Pack<T> v = load(row + i);
    float local = wide(v.value[0]);
#pragma unroll
    for (int j = 1; j < kPack; ++j) local = fmaxf(local, wide(v.value[j]));
    local *= kLog2E;
    if (local > top) sum *= power(top - local), top = local;
#pragma unroll
    for (int j = 0; j < kPack; ++j) sum += power(fmaf(wide(v.value[j]), kLog2E, -top));
  }
  if (whole + thread < V) {
    const float x = wide(row[whole + thread]) * kLog2E;
    if (x > top) sum *= power(top - x), top = x;
    sum += power(x - top);
  }
  const float warp_top = warp_max(top);
  sum = warp_sum(top == -INFINITY ? sum : sum * power(top - warp_top));
  if (lane == 0) maxima[warp] = warp_top, sums[warp] = sum;
  __syncthreads();
  float all_top = maxima[0];
  for (int i = 1; i < kWarps; ++i) all_top = fmaxf(all_top, maxima[i]);
  float total = 0;
  for (int i = 0; i < kWarps; ++i) total += maxima[i] == -INFINITY ? sums[i] : sums[i] * power(maxima[i] - all_top);
  if (thread == 0) losses_N[blockIdx.x] = logf(total) + all_top / kLog2E - target_logit;
  const float factor = valid ? scale / total : NAN;
  const auto probability = [&](float x) { return power(fmaf(x, kLog2E, -all_top)) * factor; };
  for (int i = thread * kPack; i < whole; i += kLossThreads * kPack) {
    Pack<T> v = load(row + i);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v.value[j] = narrow<T>(probability(wide(v.value[j])));
    store(row + i, v);
  }
  for (int i = whole + thread; i < static_cast<int>(ld); i += kLossThreads)
    row[i] = narrow<T>(i < V ? probability(wide(row[i])) : 0.0F);
  __syncthreads();
  if (thread == 0 && valid) row[target] = narrow<T>(probability(target_logit) - scale);
}

/// One block: each thread adds every kLossThreads-th value in order; then a fixed tree.
__global__ void mean_kernel(const float* __restrict__ values, float* __restrict__ mean, std::int64_t n) {
  __shared__ double sums[kLossThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += kLossThreads) sum += values[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kLossThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *mean = static_cast<float>(sums[0] / static_cast<double>(n));
}

// ---- scaled sums
// ------------------------------------------------------------------------------------------------------
template <typename T, bool kAdd>
__global__ void scaled_kernel(const float* __restrict__ factor, const float* __restrict__ from, T* __restrict__ to,
                              std::int64_t n) {
  constexpr int kPack = Pack<T>::kSize;
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kPack;
  const float f = *factor;
  if (i >= n) return;
  const int count = static_cast<int>(min(n - i, static_cast<std::int64_t>(kPack)));
  if (count == kPack) {
    Pack<T> v = load(to + i);
    for (int j = 0; j < kPack; ++j)
      v.value[j] = narrow<T>(kAdd ? fmaf(from[i + j], f, wide(v.value[j])) : wide(v.value[j]) * f);
    store(to + i, v);
    return;
  }
  for (int j = 0; j < count; ++j)
    to[i + j] = narrow<T>(kAdd ? fmaf(from[i + j], f, wide(to[i + j])) : wide(to[i + j]) * f);
}

// ---- dropout --------------------------------------------------------------------------------------------------------
/// SplitMix64's finaliser (Steele, Lea & Flood 2014): an avalanching hash of key and index.
__device__ inline std::uint64_t hash(std::uint64_t key, std::uint64_t i) {
  std::uint64_t x = key + (i + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
template <typename T>
__global__ void dropout_kernel(T* mask, std::int64_t n, std::uint64_t threshold, float factor, std::uint64_t key) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) mask[i] = narrow<T>((hash(key, static_cast<std::uint64_t>(i)) >> 11) < threshold ? 0.0F : factor);
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

std::int64_t norm_backward_scratch(std::int64_t N, std::int64_t C) { return tiles(N, kNormRows) * 2 * C; }

template <typename T>
void norm_backward(const T* x_NC, const T* weight_C, const float* mean_N, const float* rstd_N, const T* dy_NC,
                   const T* residual_NC, T* dx_NC, T* dweight_C, T* dbias_C, float* scratch, std::int64_t N,
                   std::int64_t C, cudaStream_t stream) {
  require_packs(C, sizeof(T));
  const dim3 block(kWarp, kNormWarps);
  const auto shared = static_cast<unsigned>(2 * C * static_cast<std::int64_t>(sizeof(float)));
  with_packs<T>(C, [&](auto packs) {
    const auto kernel = norm_backward_kernel<T, packs>;
    if (shared > 48 * 1024)
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    kernel<<<static_cast<unsigned>(tiles(N, kNormRows)), block, shared, stream>>>(
        x_NC, weight_C, mean_N, rstd_N, dy_NC, residual_NC, dx_NC, scratch, static_cast<int>(N), static_cast<int>(C));
  });
  check("backward of layer norm");
  add_tiles(scratch, tiles(N, kNormRows), dweight_C, dbias_C, C, stream);
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

template <typename T>
void cross_entropy(T* logits_NV, std::int64_t ld, const std::int64_t* targets_N, float* losses_N, float scale,
                   std::int64_t N, std::int64_t V, cudaStream_t stream) {
  require_packs(ld, sizeof(T));
  cross_entropy_kernel<T><<<static_cast<unsigned>(N), kLossThreads, 0, stream>>>(logits_NV, ld, targets_N, losses_N,
                                                                                 scale, static_cast<int>(V));
  check("cross-entropy");
}

void mean(const float* values, float* mean, std::int64_t n, cudaStream_t stream) {
  mean_kernel<<<1, kLossThreads, 0, stream>>>(values, mean, n);
  check("mean");
}

template <typename T>
void add_scaled(const float* factor, const float* from, T* to, std::int64_t n, cudaStream_t stream) {
  constexpr int kThreads = 256;
  scaled_kernel<T, true>
      <<<static_cast<unsigned>(tiles(n, kThreads * Pack<T>::kSize)), kThreads, 0, stream>>>(factor, from, to, n);
  check("scaled sum");
}
template <typename T>
void scale(const float* factor, T* to, std::int64_t n, cudaStream_t stream) {
  constexpr int kThreads = 256;
  scaled_kernel<T, false>
      <<<static_cast<unsigned>(tiles(n, kThreads * Pack<T>::kSize)), kThreads, 0, stream>>>(factor, nullptr, to, n);
  check("scaling");
}

template <typename T>
void dropout_mask(T* mask, std::int64_t n, double p, std::uint64_t key, cudaStream_t stream) {
  constexpr int kThreads = 256;
  const auto threshold = static_cast<std::uint64_t>(p * 9007199254740992.0);  // of 2^53
  dropout_kernel<T><<<static_cast<unsigned>(tiles(n, kThreads)), kThreads, 0, stream>>>(
      mask, n, threshold, static_cast<float>(1 / (1 - p)), key);
  check("dropout");
}

#define ZS_FOR(T)                                                                                                  \
  template void norm<T>(const T*, const T*, const T*, T*, float*, float*, std::int64_t, std::int64_t, float,       \
                        cudaStream_t);                                                                             \
  template void norm_backward<T>(const T*, const T*, const float*, const float*, const T*, const T*, T*, T*, T*,   \
                                 float*, std::int64_t, std::int64_t, cudaStream_t);                                \
  template void gelu<T>(const T*, T*, std::int64_t, cudaStream_t);                                                 \
  template void gelu_backward<T>(const T*, const T*, T*, T*, float*, std::int64_t, std::int64_t, cudaStream_t);    \
  template void column_sum<T>(const T*, T*, float*, std::int64_t, std::int64_t, cudaStream_t);                     \
  template void cross_entropy<T>(T*, std::int64_t, const std::int64_t*, float*, float, std::int64_t, std::int64_t, \
                                 cudaStream_t);                                                                    \
  template void add_scaled<T>(const float*, const float*, T*, std::int64_t, cudaStream_t);                         \
  template void scale<T>(const float*, T*, std::int64_t, cudaStream_t);                                            \
  template void dropout_mask<T>(T*, std::int64_t, double, std::uint64_t, cudaStream_t)
ZS_FOR(float);
ZS_FOR(__nv_bfloat16);
#undef ZS_FOR

}  // namespace zs::kernel::cuda

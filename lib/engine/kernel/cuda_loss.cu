// SPDX-License-Identifier: Apache-2.0
// Cross-entropy, and what scales its gradient.
#include <algorithm>

#include "kernel/cuda_pack.hpp"
#include "kernel/cuda_rows.hpp"

namespace zs::kernel::cuda {
namespace {

// ---- cross-entropy --------------------------------------------------------------------------------------------------
constexpr int kLossThreads = 1024;
constexpr float kLog2E = 1.4426950408889634F;

/// 2 to the x; values below the smallest normal number are 0.
__device__ inline float power(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// A block takes every gridDim.x-th row: its maximum, its sum of exponentials, then the gradient in place. The row's
/// last V % kPack columns belong to the first threads, one each. With kStays a row is in shared memory. A thread that
/// is done with its part of a row starts to load its part of the next row.
/// With kCapped a logit x counts as cap tanh(x / cap).
template <typename T, bool kStays, bool kCapped>
__global__ void __launch_bounds__(kLossThreads, 2)
    cross_entropy_kernel(T* __restrict__ logits_NV, std::int64_t ld, const std::int64_t* __restrict__ targets_N,
                         float* __restrict__ losses_N, float scale, float cap, int N, int V) {
  constexpr int kPack = Pack<T>::kSize, kWarps = kLossThreads / kWarp;
  static_assert(kWarps == kWarp, "a lane adds what a warp has");
  __shared__ float maxima[kWarps], sums[kWarps], of_row[2];
  extern __shared__ __align__(16) unsigned char staged[];
  const int thread = threadIdx.x, warp = thread / kWarp, lane = thread % kWarp, whole = V / kPack * kPack;
  const float per_cap = kCapped ? 1 / cap : 0;
  const auto logit = [&](T x) { return kCapped ? cap * tanh_for<T>(wide(x) * per_cap) : wide(x); };
  const auto ask = [&](int n, int i) { start_copy(staged + i * sizeof(T), logits_NV + n * ld + i); };
  if constexpr (kStays) {
    for (int i = thread * kPack; i < whole; i += kLossThreads * kPack) ask(blockIdx.x, i);
    end_of_group();
  }
  for (int n = blockIdx.x; n < N; n += gridDim.x) {
    T* const row = logits_NV + n * ld;
    const T* const from = kStays ? reinterpret_cast<const T*>(staged) : row;
    const std::int64_t target = targets_N[n];
    const bool valid = target >= 0 && target < V;
    const float target_logit = valid ? logit(row[target]) : NAN;
    if constexpr (kStays) wait_for_copies<0>();
    // Each thread keeps a running maximum (times log2 e) and the sum of exponentials under it.
    float top = -INFINITY, sum = 0;
    for (int i = thread * kPack; i < whole; i += kLossThreads * kPack) {
      const Pack<T> v = load(from + i);
      float x[kPack];
#pragma unroll
      for (int j = 0; j < kPack; ++j) x[j] = logit(v.value[j]);
      float local = x[0];
#pragma unroll
      for (int j = 1; j < kPack; ++j) local = fmaxf(local, x[j]);
      local *= kLog2E;
      if (local > top) sum *= power(top - local), top = local;
#pragma unroll
      for (int j = 0; j < kPack; ++j) sum += power(fmaf(x[j], kLog2E, -top));
    }
    if (whole + thread < V) {
      const float x = logit(row[whole + thread]) * kLog2E;
      if (x > top) sum *= power(top - x), top = x;
      sum += power(x - top);
    }
    const float warp_top = warp_max(top);
    sum = warp_sum(top == -INFINITY ? sum : sum * power(top - warp_top));
    if (lane == 0) maxima[warp] = warp_top, sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {  // the warps' sums in their order
      const float its_top = maxima[lane], all_top = warp_max(its_top);
      const float its_sum = its_top == -INFINITY ? sums[lane] : sums[lane] * power(its_top - all_top);
      float total = 0;
      for (int i = 0; i < kWarps; ++i) total += __shfl_sync(0xffffffff, its_sum, i);
      if (lane == 0) {
        of_row[0] = all_top, of_row[1] = total;
        losses_N[n] = logf(total) + all_top / kLog2E - target_logit;
      }
    }
    __syncthreads();
    const float all_top = of_row[0], factor = valid ? scale / of_row[1] : NAN;
    const auto probability = [&](float x) { return power(fmaf(x, kLog2E, -all_top)) * factor; };
    // The cap's derivative is 1 - (capped / cap)^2.
    const auto slope = [&](float capped) { return kCapped ? 1 - capped * per_cap * (capped * per_cap) : 1.0F; };
    const auto gradient = [&](T number) {
      const float x = logit(number);
      return kCapped ? probability(x) * slope(x) : probability(x);
    };
    const int next = n + gridDim.x;
    for (int i = thread * kPack; i < whole; i += kLossThreads * kPack) {
      Pack<T> v = load(from + i);
#pragma unroll
      for (int j = 0; j < kPack; ++j) v.value[j] = narrow<T>(gradient(v.value[j]));
      store(row + i, v);
      if (kStays && next < N) ask(next, i);
    }
    if constexpr (kStays) end_of_group();
    for (int i = whole + thread; i < static_cast<int>(ld); i += kLossThreads)
      row[i] = narrow<T>(i < V ? gradient(row[i]) : 0.0F);
    // By the thread that has written the target's probability.
    if (valid && thread == (target < whole ? target / kPack % kLossThreads : target - whole)) {
      const float left = probability(target_logit) - scale;
      row[target] = narrow<T>(kCapped ? left * slope(target_logit) : left);
    }
  }
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
template <typename T, bool kAdd>
__global__ void scaled_kernel(const float* __restrict__ factor, const float* __restrict__ from, T* __restrict__ to,
                              std::int64_t n) {
  constexpr int kPack = Pack<T>::kSize;
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kPack;
  const float f = *factor;
  if (i >= n || (!kAdd && f == 1)) return;
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

}  // namespace

template <typename T>
void cross_entropy(T* logits_NV, std::int64_t ld, const std::int64_t* targets_N, float* losses_N, float scale,
                   float cap, std::int64_t N, std::int64_t V, cudaStream_t stream) {
  require_packs(ld, sizeof(T));
  // Two rows fit into the shared memory of a processor: two blocks of it wait for memory by turns.
  constexpr std::int64_t kMost = 112 * 1024;
  const std::int64_t bytes = V * static_cast<std::int64_t>(sizeof(T));
  const auto run = [&](auto kernel, std::int64_t blocks, std::int64_t shared) {
    if (shared > 0) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kMost));
    kernel<<<static_cast<unsigned>(blocks), kLossThreads, static_cast<unsigned>(shared), stream>>>(
        logits_NV, ld, targets_N, losses_N, scale, cap, static_cast<int>(N), static_cast<int>(V));
  };
  // The largest number of resident blocks; fewer, if some blocks would then take one row more than others.
  if (bytes <= kMost && shared_memory() > 2 * kMost)
    run(cap > 0 ? cross_entropy_kernel<T, true, true> : cross_entropy_kernel<T, true, false>,
        tiles(N, tiles(N, 2 * processors())), (bytes + 15) / 16 * 16);
  else
    run(cap > 0 ? cross_entropy_kernel<T, false, true> : cross_entropy_kernel<T, false, false>, N, 0);
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

#define ZS_FOR(T)                                                                                           \
  template void cross_entropy<T>(T*, std::int64_t, const std::int64_t*, float*, float, float, std::int64_t, \
                                 std::int64_t, cudaStream_t);                                               \
  template void add_scaled<T>(const float*, const float*, T*, std::int64_t, cudaStream_t);                  \
  template void scale<T>(const float*, T*, std::int64_t, cudaStream_t)
ZS_FOR(float);
ZS_FOR(__nv_bfloat16);
#undef ZS_FOR

}  // namespace zs::kernel::cuda

// SPDX-License-Identifier: Apache-2.0
// How sums keep one order: a thread adds its packs in order, a warp its lanes by a fixed butterfly, a block its warps
// by their number. Products and sums of combine() round as LibTorch's separate operations do.
#include "kernel/cuda_experts.hpp"

#include "kernel/cuda_pack.hpp"

namespace zs::kernel::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

/// An inner number, and the slopes of it by gate and by up.
struct Inner {
  float value, by_gate, by_up;
};
template <typename T>
__device__ inline Inner inner_of(float gate, float up, float alpha, float limit) {
  const float g = fminf(gate, limit), u = fminf(fmaxf(up, -limit), limit) + 1, s = sigmoid<T>(alpha * g), glu = g * s;
  return {u * glu, gate <= limit ? u * (s + alpha * glu * (1 - s)) : 0, fabsf(up) <= limit ? glu : 0};
}

/// A thread has a pack of inner numbers of row blockIdx.x, which are two of `pre`. Backward where kBack: dpre_RX may be
/// pre_RX, and inner_RI dinner_RI.
template <typename T, bool kBack>
__global__ void __launch_bounds__(kThreads)
    alternating_kernel(const T* pre_RX, const T* __restrict__ bias_EX, const T* dinner_RI, T* dpre_RX, T* inner_RI,
                       Alternating form) {
  constexpr int kPack = Pack<T>::kSize, kHalf = kPack / 2;
  const int I = static_cast<int>(form.I), i = (blockIdx.y * kThreads + threadIdx.x) * kPack;
  if (i >= I) return;
  const std::int64_t row = blockIdx.x, at = row * 2 * I + 2 * i,
                     bias_at = static_cast<std::int64_t>(form.expert_R[row]) * 2 * I + 2 * i;
  Pack<T> inner, d;
  if (kBack) d = load(dinner_RI + row * I + i);
  const Pack<T> pres[] = {load(pre_RX + at), load(pre_RX + at + kPack)};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Pack<T>&pre = pres[half], bias = load(bias_EX + bias_at + half * kPack);
    Pack<T> dpre;
#pragma unroll
    for (int j = 0; j < kHalf; ++j) {
      const Inner made = inner_of<T>(wide(pre.value[2 * j]) + wide(bias.value[2 * j]),
                                     wide(pre.value[2 * j + 1]) + wide(bias.value[2 * j + 1]), form.alpha, form.limit);
      const int place = half * kHalf + j;
      inner.value[place] = narrow<T>(made.value);
      if (kBack) {
        dpre.value[2 * j] = narrow<T>(wide(d.value[place]) * made.by_gate);
        dpre.value[2 * j + 1] = narrow<T>(wide(d.value[place]) * made.by_up);
      }
    }
    if (kBack) store(dpre_RX + at + half * kPack, dpre);
  }
  store(inner_RI + row * I + i, inner);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) add_bias_kernel(T* __restrict__ made_RC, const T* __restrict__ bias_EC,
                                                            const std::int32_t* __restrict__ expert_R, int C) {
  constexpr int kPack = Pack<T>::kSize;
  const int c = (blockIdx.y * kThreads + threadIdx.x) * kPack;
  if (c >= C) return;
  T* const to = made_RC + static_cast<std::int64_t>(blockIdx.x) * C + c;
  Pack<T> made = load(to);
  const Pack<T> bias = load(bias_EC + static_cast<std::int64_t>(expert_R[blockIdx.x]) * C + c);
#pragma unroll
  for (int j = 0; j < kPack; ++j) made.value[j] = narrow<T>(wide(made.value[j]) + wide(bias.value[j]));
  store(to, made);
}

/// A thread has a pack of token blockIdx.x.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    combine_kernel(const T* __restrict__ x_NC, const T* __restrict__ made_RC, const std::int64_t* __restrict__ place_R,
                   const float* __restrict__ weights_NK, T* __restrict__ y_NC, int K, int C) {
  constexpr int kPack = Pack<T>::kSize;
  const int c = (blockIdx.y * kThreads + threadIdx.x) * kPack;
  if (c >= C) return;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * K,
                     at = static_cast<std::int64_t>(blockIdx.x) * C + c;
  float sum[kPack];
  for (int k = 0; k < K; ++k) {
    const Pack<T> made = load(made_RC + place_R[first + k] * C + c);
    const float weight = weights_NK[first + k];
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float term = __fmul_rn(wide(made.value[j]), weight);
      sum[j] = k == 0 ? term : __fadd_rn(sum[j], term);
    }
  }
  const Pack<T> x = load(x_NC + at);
  Pack<T> y;
#pragma unroll
  for (int j = 0; j < kPack; ++j) y.value[j] = narrow<T>(wide(x.value[j]) + wide(narrow<T>(sum[j])));
  store(y_NC + at, y);
}

/// A block has a token.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    combine_backward_kernel(const T* __restrict__ dy_NC, const T* __restrict__ made_RC,
                            const std::int64_t* __restrict__ place_R, const float* __restrict__ weights_NK,
                            T* __restrict__ dmade_RC, float* __restrict__ dweights_NK, int K, int C) {
  constexpr int kPack = Pack<T>::kSize;
  __shared__ float sums[2][kWarps];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * K;
  const T* const dy_C = dy_NC + static_cast<std::int64_t>(blockIdx.x) * C;
  for (int k = 0; k < K; ++k) {
    const std::int64_t row = place_R[first + k] * C;
    const float weight = weights_NK[first + k];
    float dot = 0;
    for (int c = threadIdx.x * kPack; c < C; c += kThreads * kPack) {
      const Pack<T> dy = load(dy_C + c), made = load(made_RC + row + c);
      Pack<T> dmade;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        dot = fmaf(wide(dy.value[j]), wide(made.value[j]), dot);
        dmade.value[j] = narrow<T>(wide(dy.value[j]) * weight);
      }
      store(dmade_RC + row + c, dmade);
    }
    dot = warp_sum(dot);
    float* const parts = sums[k % 2];  // the last sum may still be read
    if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = dot;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < kWarps; ++w) dot += parts[w];
      dweights_NK[first + k] = dot;
    }
  }
}

template <typename T>
dim3 grid_of(std::int64_t R, std::int64_t C) {
  require_packs(C, sizeof(T));
  return {static_cast<unsigned>(R), static_cast<unsigned>(tiles(C, kThreads * Pack<T>::kSize))};
}

}  // namespace

template <typename T>
void alternating(const T* pre_RX, const T* bias_EX, T* inner_RI, const Alternating& form, cudaStream_t stream) {
  if (form.R == 0) return;
  alternating_kernel<T, false>
      <<<grid_of<T>(form.R, form.I), kThreads, 0, stream>>>(pre_RX, bias_EX, nullptr, nullptr, inner_RI, form);
  check("activation of experts");
}

template <typename T>
void alternating_backward(const T* pre_RX, const T* bias_EX, const T* dinner_RI, T* dpre_RX, T* inner_RI,
                          const Alternating& form, cudaStream_t stream) {
  if (form.R == 0) return;
  alternating_kernel<T, true>
      <<<grid_of<T>(form.R, form.I), kThreads, 0, stream>>>(pre_RX, bias_EX, dinner_RI, dpre_RX, inner_RI, form);
  check("backward of the activation of experts");
}

template <typename T>
void add_bias(T* made_RC, const T* bias_EC, const std::int32_t* expert_R, std::int64_t R, std::int64_t C,
              cudaStream_t stream) {
  if (R == 0) return;
  add_bias_kernel<T><<<grid_of<T>(R, C), kThreads, 0, stream>>>(made_RC, bias_EC, expert_R, static_cast<int>(C));
  check("biases of experts");
}

template <typename T>
void combine(const T* x_NC, const T* made_RC, const std::int64_t* place_R, const float* weights_NK, T* y_NC,
             std::int64_t N, std::int64_t K, std::int64_t C, cudaStream_t stream) {
  combine_kernel<T><<<grid_of<T>(N, C), kThreads, 0, stream>>>(x_NC, made_RC, place_R, weights_NK, y_NC,
                                                               static_cast<int>(K), static_cast<int>(C));
  check("sum of experts");
}

template <typename T>
void combine_backward(const T* dy_NC, const T* made_RC, const std::int64_t* place_R, const float* weights_NK,
                      T* dmade_RC, float* dweights_NK, std::int64_t N, std::int64_t K, std::int64_t C,
                      cudaStream_t stream) {
  require_packs(C, sizeof(T));
  combine_backward_kernel<T><<<static_cast<unsigned>(N), kThreads, 0, stream>>>(
      dy_NC, made_RC, place_R, weights_NK, dmade_RC, dweights_NK, static_cast<int>(K), static_cast<int>(C));
  check("backward of the sum of experts");
}

#define ZS_FOR(T)                                                                                                    \
  template void alternating<T>(const T*, const T*, T*, const Alternating&, cudaStream_t);                            \
  template void alternating_backward<T>(const T*, const T*, const T*, T*, T*, const Alternating&, cudaStream_t);     \
  template void add_bias<T>(T*, const T*, const std::int32_t*, std::int64_t, std::int64_t, cudaStream_t);            \
  template void combine<T>(const T*, const T*, const std::int64_t*, const float*, T*, std::int64_t, std::int64_t,    \
                           std::int64_t, cudaStream_t);                                                              \
  template void combine_backward<T>(const T*, const T*, const std::int64_t*, const float*, T*, float*, std::int64_t, \
                                    std::int64_t, std::int64_t, cudaStream_t)
ZS_FOR(float);
ZS_FOR(__nv_bfloat16);
#undef ZS_FOR

}  // namespace zs::kernel::cuda

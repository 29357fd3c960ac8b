// SPDX-License-Identifier: Apache-2.0
// Shared by zs's GPU kernels: memory in units of 16 bytes, numbers widened to float32, sums over a warp in a fixed
// order. For nvcc.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace zs::kernel::cuda {

inline constexpr int kWarp = 32;

inline void check(const char* what) {
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

/// Functions whose results become numbers of T: of 16 bits by a fast exponential, whose error their rounding covers.
template <typename T>
__device__ inline float tanh_for(float x) {
  if constexpr (sizeof(T) == 2)
    return 1 - __fdividef(2.0F, 1 + __expf(2 * x));
  else
    return tanhf(x);
}
/// 1 / (1 + e^-x).
template <typename T>
__device__ inline float sigmoid(float x) {
  if constexpr (sizeof(T) == 2)
    return __fdividef(1.0F, 1 + __expf(-x));
  else
    return 1 / (1 + expf(-x));
}
/// GELU by tanh, and its derivative.
inline constexpr float kRoot = 0.7978845608028654F, kCube = 0.044715F;  // sqrt(2 / pi)
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
__device__ inline Pack<T> load(const T* from) {
  return *reinterpret_cast<const Pack<T>*>(from);
}
template <typename T>
__device__ inline void store(T* to, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(to) = pack;
}

inline std::int64_t attribute(cudaDeviceAttr name) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, name, device);
  return value;
}
/// Multiprocessors of the current GPU, and bytes of shared memory of each.
inline std::int64_t processors() { return attribute(cudaDevAttrMultiProcessorCount); }
inline std::int64_t shared_memory() { return attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor); }

/// Starts to copy 16 bytes into shared memory; complete after wait_for_copies() with this number of later groups
/// pending.
__device__ inline void start_copy(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}
__device__ inline void end_of_group() { asm volatile("cp.async.commit_group;"); }
template <int kLater>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
}

inline bool packs(std::int64_t C, std::size_t element) { return C * static_cast<std::int64_t>(element) % 16 == 0; }
inline void require_packs(std::int64_t C, std::size_t element) {
  if (!packs(C, element))
    throw Error("rows of " + std::to_string(C) +
                " elements are not a whole number of 16 bytes: a GPU takes them from there");
}

/// The number of groups of `rows` that cover n.
inline std::int64_t tiles(std::int64_t n, std::int64_t rows) { return (n + rows - 1) / rows; }

}  // namespace zs::kernel::cuda

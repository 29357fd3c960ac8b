// SPDX-License-Identifier: Apache-2.0
// The operations of experts other than products, on a GPU. As cuda_rows.hpp: independent of LibTorch, no atomics,
// every sum in an order determined by the shape; T is float or __nv_bfloat16, computation is in float32 and rounded
// once. Rows are contiguous, multiples of 16 bytes. Shapes: R rows of experts, each of the expert expert_R[r]; N tokens
// of K rows each; C columns; I inner width.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace zs::kernel::cuda {

/// Gate g and up u alternate in a row of 2I numbers, to which the expert's bias is added; g counts up to `limit`, u
/// within it: inner = (u + 1) g sigmoid(alpha g).
struct Alternating {
  const std::int32_t* expert_R;
  std::int64_t R, I;
  float alpha, limit;
};
template <typename T>
void alternating(const T* pre_RX, const T* bias_EX, T* inner_RI, const Alternating& form, cudaStream_t stream);
/// The gradient of `pre_RX`; recomputes the inner numbers.
template <typename T>
void alternating_backward(const T* pre_RX, const T* bias_EX, const T* dinner_RI, T* dpre_RX, T* inner_RI,
                          const Alternating& form, cudaStream_t stream);

/// Adds its expert's bias to each row.
template <typename T>
void add_bias(T* made_RC, const T* bias_EC, const std::int32_t* expert_R, std::int64_t R, std::int64_t C,
              cudaStream_t stream);

/// y_NC = x_NC plus the sum over k of weights_NK times row place_R[n K + k] of made_RC, in the order of k, rounded
/// before x is added.
template <typename T>
void combine(const T* x_NC, const T* made_RC, const std::int64_t* place_R, const float* weights_NK, T* y_NC,
             std::int64_t N, std::int64_t K, std::int64_t C, cudaStream_t stream);
/// The gradients of made_RC and of weights_NK.
template <typename T>
void combine_backward(const T* dy_NC, const T* made_RC, const std::int64_t* place_R, const float* weights_NK,
                      T* dmade_RC, float* dweights_NK, std::int64_t N, std::int64_t K, std::int64_t C,
                      cudaStream_t stream);

}  // namespace zs::kernel::cuda

// SPDX-License-Identifier: Apache-2.0
// A transformer's layers except matrix products, on a GPU. Independent of LibTorch: pointers, sizes, a stream. Every
// sum has an order that depends only on the shape: not on the GPU's load, its number of processors or a retry. No
// atomics. Shapes: N rows (tokens), C columns (width), V vocabulary. T is float or __nv_bfloat16; computation is in
// float32. All pointers are device memory, rows are contiguous unless a leading dimension is given. Errors of a launch
// throw zs::Error. The caller provides scratch memory of the size that the function's *_scratch returns.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace zs::kernel::cuda {

/// y = (x - mean) / sqrt(var + epsilon) * weight + bias by row; mean_N and rstd_N are kept for backward.
template <typename T>
void norm(const T* x_NC, const T* weight_C, const T* bias_C, T* y_NC, float* mean_N, float* rstd_N, std::int64_t N,
          std::int64_t C, float epsilon, cudaStream_t stream);

/// Floats of scratch that norm_backward needs.
std::int64_t norm_backward_scratch(std::int64_t N, std::int64_t C);
/// dx = gradient by x of dy through norm(), plus `residual` unless null (the gradient that bypasses the norm). Adds to
/// dweight and dbias.
template <typename T>
void norm_backward(const T* x_NC, const T* weight_C, const float* mean_N, const float* rstd_N, const T* dy_NC,
                   const T* residual_NC, T* dx_NC, T* dweight_C, T* dbias_C, float* scratch, std::int64_t N,
                   std::int64_t C, cudaStream_t stream);

/// y = GELU (tanh approximation) of x, n elements.
template <typename T>
void gelu(const T* x, T* y, std::int64_t n, cudaStream_t stream);

/// Floats of scratch that gelu_backward and column_sum need.
std::int64_t column_sum_scratch(std::int64_t N, std::int64_t C);
/// dx = dy times the derivative of GELU at x (dx may be dy); dbias_C += the sum of dx over rows.
template <typename T>
void gelu_backward(const T* x_NC, const T* dy_NC, T* dx_NC, T* dbias_C, float* scratch, std::int64_t N, std::int64_t C,
                   cudaStream_t stream);
/// sum_C += the sum of x over rows.
template <typename T>
void column_sum(const T* x_NC, T* sum_C, float* scratch, std::int64_t N, std::int64_t C, cudaStream_t stream);

/// Cross-entropy of each row of logits, with rows `ld` apart: losses_N = -log softmax(row)[target]. A logit x counts as
/// cap tanh(x / cap), unless cap is 0. Replaces the logits
/// by `scale` times their gradient; columns V to ld become 0. A target out of range gives NaN.
template <typename T>
void cross_entropy(T* logits_NV, std::int64_t ld, const std::int64_t* targets_N, float* losses_N, float scale,
                   float cap, std::int64_t N, std::int64_t V, cudaStream_t stream);
/// mean[0] = the mean of n values, summed in a fixed order.
void mean(const float* values, float* mean, std::int64_t n, cudaStream_t stream);

/// to += factor[0] * from, and to *= factor[0]; n elements.
template <typename T>
void add_scaled(const float* factor, const float* from, T* to, std::int64_t n, cudaStream_t stream);
template <typename T>
void scale(const float* factor, T* to, std::int64_t n, cudaStream_t stream);

}  // namespace zs::kernel::cuda

// SPDX-License-Identifier: Apache-2.0
// Llama's layers except matrix products, and the embedding's gradient, on a GPU. As cuda_rows.hpp: independent of
// LibTorch, no atomics, every sum in an order determined by the shape; T is float or __nv_bfloat16, computation is in
// float32 and rounded once. Rows are contiguous, multiples of 16 bytes. Shapes: N rows (tokens), C columns (width), I
// inner width.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace zs::kernel::cuda {

/// Whether the RMS norm below supports rows of C elements of `element` bytes.
bool rms_norm_fits(std::int64_t C, std::size_t element);
/// The layout of N norms of C numbers in each operand: rows are `ld` numbers apart, and each has `heads` norms, one
/// after another.
struct NormRows {
  std::int64_t N, C, ld, heads = 1;
};
/// y = x * rstd * (weight + plus), rstd = 1 / sqrt(mean(x^2) + epsilon) by row, added to `past` unless null; rstd_N is
/// kept for backward.
template <typename T>
void rms_norm(const T* x_NC, const T* weight_C, const T* past_NC, T* y_NC, float* rstd_N, const NormRows& rows,
              float plus, float epsilon, cudaStream_t stream);

/// Floats of scratch that rms_norm_backward needs.
std::int64_t rms_norm_backward_scratch(std::int64_t N, std::int64_t C);
/// dx (which may be dy) = gradient by x of dy through rms_norm(), plus `past` unless null (the gradient that bypasses
/// the norm). Recomputes y unless null. Adds to dweight unless null.
template <typename T>
void rms_norm_backward(const T* x_NC, const T* weight_C, const float* rstd_N, const T* dy_NC, const T* past_NC,
                       T* dx_NC, T* y_NC, T* dweight_C, float* scratch, const NormRows& rows, float plus,
                       cudaStream_t stream);

/// Whether rotate() supports turning 2 R numbers of `element` bytes.
bool rotate_fits(std::int64_t R, std::size_t element);
/// Rotates, in place, the first 2 R numbers of the first `heads` heads of D numbers of each row of `width` numbers:
/// number r with number R + r, by the angle of the row's position n % positions, whose cosine and sine are cos_TR and
/// sin_TR. `back`: the inverse.
template <typename T>
void rotate(T* x_NE, std::int64_t width, std::int64_t heads, std::int64_t D, const float* cos_TR, const float* sin_TR,
            std::int64_t N, std::int64_t positions, std::int64_t R, bool back, cudaStream_t stream);

/// y_NI = activation(gate) * up, SiLU or GELU by tanh; a row of gate_up has I numbers of gate, then I of up.
template <typename T>
void gated(bool gelu, const T* gate_up, T* y_NI, std::int64_t N, std::int64_t I, cudaStream_t stream);
/// The gradient of gated(), in the same layout; recomputes y.
template <typename T>
void gated_backward(bool gelu, const T* gate_up, const T* dy_NI, T* dgate_up, T* y_NI, std::int64_t N, std::int64_t I,
                    cudaStream_t stream);

/// weight[v] += the sum of the rows dy[order[i]] whose tokens[i] is v: tokens ascend, and the rows of each are added in
/// order.
template <typename T>
void add_rows(const std::int64_t* tokens_N, const std::int64_t* order_N, const T* dy_NC, T* weight_VC, std::int64_t N,
              std::int64_t C, cudaStream_t stream);

}  // namespace zs::kernel::cuda

// SPDX-License-Identifier: Apache-2.0
// Loops over rows of floats for the fused kernels. Their bits depend neither on the machine's vector width nor on
// threads: sums use 16 lanes on any hardware, and nothing is contracted to FMA.
#pragma once
#include <cstdint>

#include "device/view.hpp"

namespace zs::kernel {

/// Converts n numbers to float32, and back: to nearest, ties to even; NaN stays NaN.
void widen(const device::Bfloat16* from, float* to, std::int64_t n);
void narrow(const float* from, device::Bfloat16* to, std::int64_t n);

/// y = GELU (tanh approximation) of x, n elements. NaN stays NaN.
void gelu(const float* x, float* y, std::int64_t n);
/// dx = dy times the derivative of GELU at x.
void gelu_backward(const float* x, const float* dy, float* dx, std::int64_t n);

/// y = SiLU of gate times up, n elements.
void swiglu(const float* gate, const float* up, float* y, std::int64_t n);
/// The gradients by gate and up.
void swiglu_backward(const float* gate, const float* up, const float* dy, float* dgate, float* dup, std::int64_t n);

/// y = x times weight times 1 / sqrt(mean(x^2) + epsilon); returns the last factor. n > 0.
float rms_norm(const float* x, const float* weight, float* y, std::int64_t n, float epsilon);
/// dx = the gradient by x, plus `past` unless null; dweight += the gradient by weight, any part of a row. `scale` is
/// the result of rms_norm.
void rms_norm_backward(const float* x, const float* weight, const float* dy, const float* past, float scale, float* dx,
                       std::int64_t n);
void rms_norm_backward_weight(const float* x, const float* dy, float scale, float* dweight, std::int64_t n);

/// y = the halves a, b of x, r numbers each, rotated: a cos - b sin, b cos + a sin (back: with -sin).
void rotate(const float* x, const float* cos, const float* sin, bool back, float* y, std::int64_t r);

/// Replaces the row by its softmax. n > 0.
void softmax(float* row, std::int64_t n);
/// dp = p (dp - sum(dp p)): converts the gradient by a softmax row p to that by its logits, in place.
void softmax_backward(const float* p, float* dp, std::int64_t n);

/// Replaces each x of a row by cap tanh(x / cap); `slopes`, which may be the row itself, gets the derivative by x
/// unless null.
void cap(float* row, float* slopes, std::int64_t n, float cap);
/// y *= x, n elements.
void multiply(const float* x, float* y, std::int64_t n);

/// -log(softmax(row)[target]). With `gradient`, replaces the row by `scale` times the gradient by the logits.
float cross_entropy(float* row, std::int64_t n, std::int64_t target, float scale, bool gradient);

}  // namespace zs::kernel

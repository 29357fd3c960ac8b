// SPDX-License-Identifier: Apache-2.0
// Loops over rows of floats that the fused kernels are made of. Their bits depend neither on the width of the machine's
// vectors nor on threads: sums go over 16 lanes whatever the hardware has, and nothing is contracted to FMA.
#pragma once
#include <cstdint>

#include "device/view.hpp"

namespace zs::kernel {

/// n numbers as float32, and float32 as n numbers: to the nearest, of two equally near to the even one; NaN stays NaN.
void widen(const device::Bfloat16* from, float* to, std::int64_t n);
void narrow(const float* from, device::Bfloat16* to, std::int64_t n);

/// y = GELU by tanh of x, n elements. NaN stays NaN.
void gelu(const float* x, float* y, std::int64_t n);
/// dx = dy times the derivative of GELU at x.
void gelu_backward(const float* x, const float* dy, float* dx, std::int64_t n);

/// y = SiLU of gate times up, n elements.
void swiglu(const float* gate, const float* up, float* y, std::int64_t n);
/// The gradients by gate and up.
void swiglu_backward(const float* gate, const float* up, const float* dy, float* dgate, float* dup, std::int64_t n);

/// y = x times weight times 1 / sqrt(mean(x^2) + epsilon), which is given back. n > 0.
float rms_norm(const float* x, const float* weight, float* y, std::int64_t n, float epsilon);
/// dx = the gradient by x, plus `past` where that is not null; dweight += the gradient by weight. `scale` is what
/// rms_norm gave.
void rms_norm_backward(const float* x, const float* weight, const float* dy, const float* past, float scale, float* dx,
                       float* dweight, std::int64_t n);

/// y = the halves a, b of x, r numbers each, turned: a cos - b sin, b cos + a sin (back: with -sin).
void rotate(const float* x, const float* cos, const float* sin, bool back, float* y, std::int64_t r);

/// row = its softmax, in place. n > 0.
void softmax(float* row, std::int64_t n);
/// dp = p (dp - sum(dp p)): from the gradient by a softmax row p to that by its logits, in place.
void softmax_backward(const float* p, float* dp, std::int64_t n);

/// Each x of a row becomes cap tanh(x / cap); `slopes`, which may be the row itself, becomes the derivative by x unless
/// it is null.
void cap(float* row, float* slopes, std::int64_t n, float cap);
/// y *= x, n elements.
void multiply(const float* x, float* y, std::int64_t n);

/// -log(softmax(row)[target]). With `gradient` the row becomes that loss's gradient by the logits times `scale`.
float cross_entropy(float* row, std::int64_t n, std::int64_t target, float scale, bool gradient);

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
// Loops over rows of floats that the fused kernels are made of. Their bits depend neither on the width of the machine's
// vectors nor on threads: sums go over 16 lanes whatever the hardware has, and nothing is contracted to FMA.
#pragma once
#include <cstdint>

namespace zs::kernel {

/// y = GELU by tanh of x, n elements. NaN stays NaN.
void gelu(const float* x, float* y, std::int64_t n);
/// dx = dy times the derivative of GELU at x.
void gelu_backward(const float* x, const float* dy, float* dx, std::int64_t n);

/// row = its softmax, in place. n > 0.
void softmax(float* row, std::int64_t n);
/// dp = p (dp - sum(dp p)): from the gradient by a softmax row p to that by its logits, in place.
void softmax_backward(const float* p, float* dp, std::int64_t n);

/// -log(softmax(row)[target]). With `gradient` the row becomes that loss's gradient by the logits times `scale`.
float cross_entropy(float* row, std::int64_t n, std::int64_t target, float scale, bool gradient);

}  // namespace zs::kernel

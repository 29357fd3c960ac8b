// SPDX-License-Identifier: Apache-2.0
// Matrix products of the fused kernels: by oneDNN if LibTorch has it, since it generates code for the present CPU,
// while MKL is fast only on one maker's (half the speed on AMD).
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel {

/// out = beta out + alpha a b, matrices of float32 or all of bfloat16, with sums in float32
/// rounded once; out may be a part of a larger matrix. No gradient. The same shapes and
/// strides give the same bits at any address; with a single row, at any address with the
/// same offset from 64 bytes, as parameters in a unit's buffer have in every stage.
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, double beta, double alpha = 1);

/// Whether oneDNN computes large products of a type.
bool multiplies_by_onednn(at::ScalarType type);

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
// Matrix products of the fused kernels: by oneDNN where LibTorch has it, since it makes its code for the processor that
// is there, and MKL makes its fastest for one maker's alone (half the speed on AMD).
#pragma once
#include "unit/tensor.hpp"

namespace zs::kernel {

/// out = beta out + alpha a b, matrices of float32 or all of bfloat16, whose sums are float32 and rounded once; out may
/// be a place in a larger one. No gradient. The same shapes and strides give the same bits wherever the matrices lie;
/// with one row alone, wherever they lie at the same distance from 64 bytes, as parameters in a unit's buffer do in
/// every stage.
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, double beta, double alpha = 1);

/// Whether oneDNN multiplies the large ones of a type.
bool multiplies_by_onednn(at::ScalarType type);

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
// Matrix products on a GPU by cuBLASLt. The choice of the kernel depends only on shapes, types and epilogue, so the
// bits are the same in every run, on every rank and at every ZeRO stage: alignment, workspace and selection rules are
// constants, and split sums are added in float32. (NVIDIA, cuBLAS library 13.0, section 2.1.4 "Results
// reproducibility".)
#pragma once
#include <functional>
#include <string>

#include "unit/tensor.hpp"

namespace zs::kernel::cuda {

/// Operations fused into a product.
struct Epilogue {
  at::Tensor bias_N{};     ///< added to every row; undefined for none
  at::Tensor addend_MN{};  ///< added; may be `out`; undefined for none
  at::Tensor alpha{};      ///< factor of the product, a float32 scalar on the device; undefined for 1
  /// For 8-bit factors, float32 on the device: the value of 1 in each, a scalar, or in each row of a (M) and each
  /// column of b (N).
  at::Tensor unit_a{}, unit_b{};
  bool quick = false;  ///< 8-bit factors: accumulate only in the tensor cores; less precise, faster
};

/// out_MN = alpha a_MK b_KN + addend_MN + bias_N. Tensors of one GPU; a and b have one dtype (float32, bfloat16), out
/// has theirs or float32; rows or columns of each are contiguous. Or a and b have 8 bits each (not both float8_e5m2),
/// out bfloat16 or float32; then K is contiguous in both. Runs on the current stream.
void multiply(at::Tensor out_MN, const at::Tensor& a_MK, const at::Tensor& b_KN, const Epilogue& epilogue = {});

/// While products are measured (measure_products() of calibration.hpp): whether they are.
bool measuring();
/// Counts a call of `name`, and measures the first one: `call` is run several times. REQUIRES: measuring().
void measure(const std::string& name, double operations, const std::function<void()>& call);

/// Whether float32 products may use TF32: allow_tf32() of kernels.hpp.
bool tf32_allowed();
/// Whether bits must be reproducible: repeat_bits() of calibration.hpp.
bool bits_repeat();

}  // namespace zs::kernel::cuda

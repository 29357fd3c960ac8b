// SPDX-License-Identifier: Apache-2.0
// Matrix products on a GPU by cuBLASLt. The kernel that computes a product is a function of its shapes, types and
// epilogue alone, so its bits are the same in every run, on every rank and at every ZeRO stage: alignment, workspace
// and the rules of the choice are constants, and split sums are added in float32. (NVIDIA, cuBLAS library 13.0,
// section 2.1.4 "Results reproducibility".)
#pragma once
#include <string>

#include "unit/tensor.hpp"

namespace zs::kernel::cuda {

/// What joins a product on its way to memory.
struct Epilogue {
  at::Tensor bias_N{};     ///< added to every row; undefined for none
  at::Tensor addend_MN{};  ///< added; may be `out` itself; undefined for none
  at::Tensor alpha{};      ///< a float32 scalar on the device, by which the product is multiplied; undefined for 1
  at::Tensor unit_a{}, unit_b{};  ///< of factors of 8 bits: float32 scalars on the device, what 1 stands for in each
  bool quick = false;             ///< factors of 8 bits: sums within the tensor cores alone, fewer bits, faster
};

/// out_MN = alpha a_MK b_KN + addend_MN + bias_N. Tensors of one GPU; a and b have one dtype (float32, bfloat16), out
/// has theirs or float32; rows or columns of each are contiguous. Or a and b have 8 bits each (not both float8_e5m2),
/// out bfloat16 or float32; then K is contiguous in both. Runs on the current stream.
void multiply(at::Tensor out_MN, const at::Tensor& a_MK, const at::Tensor& b_KN, const Epilogue& epilogue = {});

/// Whether float32 products may be made of TF32: allow_tf32() of kernels.hpp.
bool tf32_allowed();
/// Whether bits have to repeat: repeat_bits() of calibration.hpp.
bool bits_repeat();

}  // namespace zs::kernel::cuda

// SPDX-License-Identifier: Apache-2.0
// Products with a layer's weights, forward and backward, with factors unchanged or rounded to 8 bits (use_float8() of
// kernels.hpp). An 8-bit product needs the summed dimension contiguous in both factors, so a matrix that is summed over
// its rows is rounded into its transpose. As in torchao's tensorwise recipe, forward uses the format with more
// precision and fast accumulation, gradients the one with more range.
#pragma once
#include "kernel/matmul.hpp"

namespace zs::kernel::cuda {

/// Whether factors are rounded.
bool float8_in_use();

/// A factor of one product: [M, K], summed over K.
struct Side {
  at::Tensor matrix_MK, unit{};  ///< the unit of 8 bits, undefined for an unrounded factor
};

/// A matrix that is a factor of one or two products.
class Factor {
 public:
  enum class Role { value, gradient };
  /// The required sides: products sum over columns (`rows`, original layout) or over rows (`columns`).
  enum class Wants { rows, columns, both };

  /// `largest`: that of an earlier factor of the same matrix, if there was one.
  Factor(const at::Tensor& x_RC, Role role, Wants wants, const at::Tensor& largest = {});

  /// The largest magnitude, a float32 scalar on the device; undefined without rounding.
  const at::Tensor& largest() const { return largest_; }
  /// REQUIRES: requested in `wants`.
  Side rows() const { return {rows_, unit_}; }
  Side columns() const { return {columns_, unit_}; }

 private:
  at::Tensor rows_, columns_, unit_, largest_;
};

/// out_MN = a_MK b_NK^T, with the epilogue.
void multiply(const at::Tensor& out_MN, const Side& a_MK, const Side& b_NK, Epilogue epilogue = {});

}  // namespace zs::kernel::cuda

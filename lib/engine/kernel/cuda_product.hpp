// SPDX-License-Identifier: Apache-2.0
// Products with a layer's weights, forward and backward, with factors unchanged or rounded to 8 bits (use_float8() of
// kernels.hpp). An 8-bit product needs the summed dimension contiguous in both factors, so a matrix that is summed over
// its rows is rounded into its transpose. Forward accumulates fast. Tensorwise, forward uses the format with more
// precision, gradients the one with more range, as in torchao's recipe of that name. Rowwise, all use the first, and
// numbers share a scale where they are added up to one result: a row, or, of a matrix summed over its rows, a column.
#pragma once
#include "kernel/matmul.hpp"

namespace zs::kernel::cuda {

/// Whether factors are rounded.
bool float8_in_use();

/// A factor of one product: [M, K], summed over K.
struct Side {
  at::Tensor matrix_MK, unit{};  ///< the unit of 8 bits, one or M of them; undefined for an unrounded factor
  bool value = true;             ///< else a gradient
};

/// A matrix that is a factor of one or two products.
class Factor {
 public:
  enum class Role { value, gradient };
  /// The required sides: products sum over columns (`rows`, original layout) or over rows (`columns`).
  enum class Wants { rows, columns, both };

  /// `largest`: the result for an earlier factor of the same matrix, if there was one.
  Factor(const at::Tensor& x_RC, Role role, Wants wants, const at::Tensor& largest = {});

  /// The largest magnitude, a float32 scalar on the device; undefined without rounding, and with scales of rows.
  const at::Tensor& largest() const { return largest_; }
  /// REQUIRES: requested in `wants`.
  Side rows() const { return {rows_, unit_of_rows_, value_}; }
  Side columns() const { return {columns_, unit_of_columns_, value_}; }

 private:
  bool value_;
  at::Tensor rows_, columns_, unit_of_rows_, unit_of_columns_, largest_;

  void round(const at::Tensor& x_RC, const at::Tensor& largest);
  void round_by_row(const at::Tensor& x_RC);
};

/// out_MN = a_MK b_NK^T, with the epilogue.
void multiply(const at::Tensor& out_MN, const Side& a_MK, const Side& b_NK, Epilogue epilogue = {});

}  // namespace zs::kernel::cuda

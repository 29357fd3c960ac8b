// SPDX-License-Identifier: Apache-2.0
// Products of a layer's weights, forward and backward, of factors as they are or rounded to 8 bits (use_float8() of
// kernels.hpp). A product of 8 bits takes both factors with the summed dimension contiguous, so a matrix that is summed
// over its rows is rounded into its transpose. As in torchao's tensorwise recipe, what goes forward has the format with
// more precision and quick sums, gradients the one with more range.
#pragma once
#include "kernel/matmul.hpp"

namespace zs::kernel::cuda {

/// Whether factors are rounded.
bool float8_in_use();

/// A factor of one product: [M, K], summed over K.
struct Side {
  at::Tensor matrix_MK, unit{};  ///< the unit of 8 bits, undefined of a factor as it is
};

/// A matrix that is a factor of one product or of two.
class Factor {
 public:
  enum class Role { value, gradient };
  /// The sides that are wanted, of which products sum over columns (`rows`, as it lies) or over rows (`columns`).
  enum class Wants { rows, columns, both };

  /// `largest`: what an earlier factor of the same matrix had, where there was one.
  Factor(const at::Tensor& x_RC, Role role, Wants wants, const at::Tensor& largest = {});

  /// The largest magnitude, a float32 scalar on the device; undefined where nothing is rounded.
  const at::Tensor& largest() const { return largest_; }
  /// REQUIRES: wanted.
  Side rows() const { return {rows_, unit_}; }
  Side columns() const { return {columns_, unit_}; }

 private:
  at::Tensor rows_, columns_, unit_, largest_;
};

/// out_MN = a_MK b_NK^T, with the epilogue.
void multiply(const at::Tensor& out_MN, const Side& a_MK, const Side& b_NK, Epilogue epilogue = {});

}  // namespace zs::kernel::cuda

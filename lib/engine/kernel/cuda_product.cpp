// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda_product.hpp"

#include "kernel/cuda_float8.hpp"
#include "kernel/cuda_layers.hpp"

namespace zs::kernel::cuda {
namespace {

Scales scales = Scales::none;

at::Tensor scalar() { return at::empty({}, at::TensorOptions(at::kFloat).device(at::kCUDA)); }

void* place(const at::Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }

}  // namespace

bool float8_in_use() { return scales != Scales::none; }

Factor::Factor(const at::Tensor& x_RC, Role role, Wants wants, const at::Tensor& most) : value_(role == Role::value) {
  if (!float8_in_use()) {
    rows_ = x_RC, columns_ = x_RC.t();
    return;
  }
  const std::int64_t R = x_RC.size(0), C = x_RC.size(1);
  if (R % kFloat8Group != 0 || C % kFloat8Group != 0)
    throw Error("a product of 8 bits takes matrices of whole groups of " + std::to_string(kFloat8Group) +
                " rows and columns, and one has " + std::to_string(R) + " x " + std::to_string(C) +
                ": choose batch_size x seq_length and widths so, or leave out --fp8");
  const bool precise = value_ || scales == Scales::rowwise;
  const at::TensorOptions options = x_RC.options().dtype(precise ? at::kFloat8_e4m3fn : at::kFloat8_e5m2);
  if (wants != Wants::columns) rows_ = at::empty({R, C}, options);
  if (wants != Wants::rows) columns_ = at::empty({C, R}, options);
  if (scales == Scales::rowwise)
    round_by_row(x_RC);
  else
    round(x_RC, most);
}

void Factor::round(const at::Tensor& x_RC, const at::Tensor& most) {
  unit_of_rows_ = unit_of_columns_ = scalar();
  largest_ = most.defined() ? most : scalar();
  with_type(x_RC, [&](auto type) {
    using T = decltype(type);
    if (!most.defined()) cuda::largest(data<T>(x_RC), data<float>(largest_), x_RC.numel(), stream());
    round_to_float8(data<T>(x_RC), data<float>(largest_), value_ ? Float8::e4m3 : Float8::e5m2, place(rows_),
                    place(columns_), data<float>(unit_of_rows_), x_RC.size(0), x_RC.size(1), stream());
  });
}

void Factor::round_by_row(const at::Tensor& x_RC) {
  const std::int64_t R = x_RC.size(0), C = x_RC.size(1);
  with_type(x_RC, [&](auto type) {
    using T = decltype(type);
    if (rows_.defined()) {
      unit_of_rows_ = floats(R);
      round_rows_to_float8(data<T>(x_RC), rows_.data_ptr(), data<float>(unit_of_rows_), R, C, stream());
    }
    if (columns_.defined()) {
      unit_of_columns_ = floats(C);
      const at::Tensor most_C = floats(C);
      round_columns_to_float8(data<T>(x_RC), data<float>(most_C), columns_.data_ptr(), data<float>(unit_of_columns_), R,
                              C, stream());
    }
  });
}

void multiply(const at::Tensor& out_MN, const Side& a_MK, const Side& b_NK, Epilogue epilogue) {
  epilogue.unit_a = a_MK.unit, epilogue.unit_b = b_NK.unit;
  epilogue.quick = float8_in_use() && a_MK.value && b_NK.value;
  multiply(out_MN, a_MK.matrix_MK, b_NK.matrix_MK.t(), epilogue);
}

/// For the whole process.
extern "C" void zs_cuda_use_float8(Scales chosen) { scales = chosen; }

}  // namespace zs::kernel::cuda

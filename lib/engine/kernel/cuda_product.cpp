// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda_product.hpp"

#include "kernel/cuda_float8.hpp"
#include "kernel/cuda_layers.hpp"

namespace zs::kernel::cuda {
namespace {

bool float8 = false;

at::Tensor scalar() { return at::empty({}, at::TensorOptions(at::kFloat).device(at::kCUDA)); }

}  // namespace

bool float8_in_use() { return float8; }

Factor::Factor(const at::Tensor& x_RC, Role role, Wants wants, const at::Tensor& most) {
  if (!float8) {
    rows_ = x_RC, columns_ = x_RC.t();
    return;
  }
  const std::int64_t R = x_RC.size(0), C = x_RC.size(1);
  if (R % kFloat8Group != 0 || C % kFloat8Group != 0)
    throw Error("a product of 8 bits takes matrices of whole groups of " + std::to_string(kFloat8Group) +
                " rows and columns, and one has " + std::to_string(R) + " x " + std::to_string(C) +
                ": choose batch_size x seq_length and widths so, or leave out --fp8");
  const at::TensorOptions options = x_RC.options().dtype(role == Role::value ? at::kFloat8_e4m3fn : at::kFloat8_e5m2);
  if (wants != Wants::columns) rows_ = at::empty({R, C}, options);
  if (wants != Wants::rows) columns_ = at::empty({C, R}, options);
  unit_ = scalar();
  largest_ = most.defined() ? most : scalar();
  with_type(x_RC, [&](auto type) {
    using T = decltype(type);
    if (!most.defined()) cuda::largest(data<T>(x_RC), data<float>(largest_), x_RC.numel(), stream());
    const auto place = [](const at::Tensor& of) { return of.defined() ? of.data_ptr() : nullptr; };
    round_to_float8(data<T>(x_RC), data<float>(largest_), role == Role::value ? Float8::e4m3 : Float8::e5m2,
                    place(rows_), place(columns_), data<float>(unit_), R, C, stream());
  });
}

void multiply(const at::Tensor& out_MN, const Side& a_MK, const Side& b_NK, Epilogue epilogue) {
  epilogue.unit_a = a_MK.unit, epilogue.unit_b = b_NK.unit;
  const auto is_value = [](const Side& side) { return side.matrix_MK.scalar_type() == at::kFloat8_e4m3fn; };
  epilogue.quick = is_value(a_MK) && is_value(b_NK);
  multiply(out_MN, a_MK.matrix_MK, b_NK.matrix_MK.t(), epilogue);
}

/// For the whole process.
extern "C" void zs_cuda_use_float8(bool on) { float8 = on; }

}  // namespace zs::kernel::cuda

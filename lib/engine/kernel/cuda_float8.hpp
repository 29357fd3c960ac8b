// SPDX-License-Identifier: Apache-2.0
// Matrices rounded to 8 bits for products on a GPU, each with one scale (current scaling): the largest magnitude of the
// matrix becomes the largest number of the format. A maximum has no order, so the bits depend on the matrix alone.
// Formats: Micikevicius et al. 2022, "FP8 formats for deep learning". Free of LibTorch; T is float or __nv_bfloat16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace zs::kernel::cuda {

/// 4 bits of exponent and 3 of fraction, up to 448; or 5 and 2, up to 57344.
enum class Float8 { e4m3, e5m2 };

/// Rows and columns of what is rounded come in whole groups of so many, as products of 8 bits need them.
inline constexpr std::int64_t kFloat8Group = 16;

/// most[0] = the largest |x|; NaN where there is one.
template <typename T>
void largest(const T* x, float* most, std::int64_t n, cudaStream_t stream);

/// x times `scale`, rounded to nearest even, into `rows` as it lies and into `columns` transposed, each where it is not
/// null; scale = largest number of the format / most[0], at most the largest float. unit[0] = 1 / scale. Where most[0]
/// is infinite or NaN, products with the result are NaN. REQUIRES: R and C are multiples of kFloat8Group.
template <typename T>
void round_to_float8(const T* x_RC, const float* most, Float8 format, void* rows_RC, void* columns_CR, float* unit,
                     std::int64_t R, std::int64_t C, cudaStream_t stream);

}  // namespace zs::kernel::cuda

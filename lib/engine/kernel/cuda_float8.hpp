// SPDX-License-Identifier: Apache-2.0
// Rounds matrices to 8 bits for products on a GPU, each with one scale (current scaling): the largest magnitude of the
// matrix maps to the largest number of the format. A maximum has no order, so the bits depend only on the matrix.
// Formats: Micikevicius et al. 2022, "FP8 formats for deep learning". Without LibTorch; T: float or __nv_bfloat16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace zs::kernel::cuda {

/// 4 bits of exponent and 3 of fraction, up to 448; or 5 and 2, up to 57344.
enum class Float8 { e4m3, e5m2 };

/// Rows and columns must be multiples of this, as 8-bit products require.
inline constexpr std::int64_t kFloat8Group = 16;

/// most[0] = the largest |x|; NaN if x has one.
template <typename T>
void largest(const T* x, float* most, std::int64_t n, cudaStream_t stream);

/// x times `scale`, rounded to nearest even, written to `rows` and transposed to `columns`, each unless null; scale =
/// largest number of the format / most[0], at most the largest float. unit[0] = 1 / scale. If most[0] is infinite or
/// NaN, products with the result are NaN. REQUIRES: R and C are multiples of kFloat8Group.
template <typename T>
void round_to_float8(const T* x_RC, const float* most, Float8 format, void* rows_RC, void* columns_CR, float* unit,
                     std::int64_t R, std::int64_t C, cudaStream_t stream);

}  // namespace zs::kernel::cuda

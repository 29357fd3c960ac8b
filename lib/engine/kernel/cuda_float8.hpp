// SPDX-License-Identifier: Apache-2.0
// Rounds matrices to 8 bits for products on a GPU, by scales of the present numbers (current scaling): one for a
// matrix, whose largest magnitude maps to the largest number of the format; or, in E4M3, one for each row or each
// column: the largest power of two that keeps it in the format, so that nothing but the number itself is rounded. A
// maximum has no order, so the bits depend only on the matrix. Formats: Micikevicius et al. 2022, "FP8 formats for deep
// learning". Without LibTorch; T: float or __nv_bfloat16.
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

/// The same in E4M3 with a scale for each row: unit_R[r] = 1 / the scale of row r. A row with infinity or NaN gives
/// NaN.
template <typename T>
void round_rows_to_float8(const T* x_RC, void* rows_RC, float* unit_R, std::int64_t R, std::int64_t C,
                          cudaStream_t stream);
/// The same for each column, written transposed. most_C: receives the largest magnitudes, as round_to_float8 takes one.
template <typename T>
void round_columns_to_float8(const T* x_RC, float* most_C, void* columns_CR, float* unit_C, std::int64_t R,
                             std::int64_t C, cudaStream_t stream);

}  // namespace zs::kernel::cuda

// SPDX-License-Identifier: Apache-2.0
// The 16-bit floats: bf16 and f16 to f32 exactly, and back with round-to-nearest-even. A NaN becomes a quiet NaN as in
// PyTorch's scalar conversions: 0x7FC0 in bf16, sign | 0x7E00 in f16.
#pragma once
#include <cstddef>
#include <cstdint>

namespace zs::tensorfile {

float bf16_to_f32(std::uint16_t bits);
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);
/// Values above 65504 + half a step become infinity. Subnormals are kept.
std::uint16_t f32_to_f16(float value);

/// Converts `count` elements; `from` and `to` must not overlap.
void bf16_to_f32(const std::uint16_t* from, float* to, std::size_t count);
void f16_to_f32(const std::uint16_t* from, float* to, std::size_t count);
void f32_to_bf16(const float* from, std::uint16_t* to, std::size_t count);
void f32_to_f16(const float* from, std::uint16_t* to, std::size_t count);

}  // namespace zs::tensorfile

// SPDX-License-Identifier: Apache-2.0
// Element types of tensors on disk, with the names of PyTorch and of safetensors. All little-endian.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace zs::tensorfile {

/// f8_e4m3 is the variant without infinities (torch.float8_e4m3fn). c64 is two f32.
enum class Dtype : std::uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f8_e4m3,
  f8_e5m2,
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128
};
inline constexpr int kDtypeCount = 17;

/// Bytes of one element.
std::size_t size_of(Dtype dtype);

/// The name in options and messages: "f32", "bf16", "bool".
std::string_view name_of(Dtype dtype);

/// The name in a safetensors header: "F32", "BF16", "BOOL"; empty for c128, which that format lacks.
std::string_view safetensors_name(Dtype dtype);
std::optional<Dtype> from_safetensors_name(std::string_view name);

/// The name in Python after "torch.": "float32", "bfloat16", "bool".
std::string_view torch_name(Dtype dtype);
std::optional<Dtype> from_torch_name(std::string_view name);

/// PyTorch's storage class: "FloatStorage"; empty for types newer than those classes (u16, u32, u64, f8), which PyTorch
/// 1.13 does not know.
std::string_view storage_class(Dtype dtype);
std::optional<Dtype> from_storage_class(std::string_view name);

// The 16-bit floats: bf16 and f16 to f32 exactly, and back with round-to-nearest-even. A NaN becomes a quiet NaN as in
// PyTorch's scalar conversions: 0x7FC0 in bf16, sign | 0x7E00 in f16.

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

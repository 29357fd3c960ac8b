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

}  // namespace zs::tensorfile

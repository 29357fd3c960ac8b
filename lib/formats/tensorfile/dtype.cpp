// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/dtype.hpp"

#include <array>
#include <bit>

namespace zs::tensorfile {
namespace {

struct Row {
  std::size_t size;
  std::string_view name, safetensors, torch, storage;
};

// In the order of the enumeration.
constexpr std::array<Row, kDtypeCount> kRows = {{
    {1, "bool", "BOOL", "bool", "BoolStorage"},
    {1, "u8", "U8", "uint8", "ByteStorage"},
    {1, "i8", "I8", "int8", "CharStorage"},
    {2, "u16", "U16", "uint16", ""},
    {2, "i16", "I16", "int16", "ShortStorage"},
    {4, "u32", "U32", "uint32", ""},
    {4, "i32", "I32", "int32", "IntStorage"},
    {8, "u64", "U64", "uint64", ""},
    {8, "i64", "I64", "int64", "LongStorage"},
    {1, "f8_e4m3", "F8_E4M3", "float8_e4m3fn", ""},
    {1, "f8_e5m2", "F8_E5M2", "float8_e5m2", ""},
    {2, "f16", "F16", "float16", "HalfStorage"},
    {2, "bf16", "BF16", "bfloat16", "BFloat16Storage"},
    {4, "f32", "F32", "float32", "FloatStorage"},
    {8, "f64", "F64", "float64", "DoubleStorage"},
    {8, "c64", "C64", "complex64", "ComplexFloatStorage"},
    {16, "c128", "", "complex128", "ComplexDoubleStorage"},
}};

const Row& row(Dtype dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

std::optional<Dtype> find(std::string_view Row::*field, std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].*field == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

}  // namespace

std::size_t size_of(Dtype dtype) { return row(dtype).size; }
std::string_view name_of(Dtype dtype) { return row(dtype).name; }
std::string_view safetensors_name(Dtype dtype) { return row(dtype).safetensors; }
std::optional<Dtype> from_safetensors_name(std::string_view name) { return find(&Row::safetensors, name); }
std::string_view torch_name(Dtype dtype) { return row(dtype).torch; }
std::optional<Dtype> from_torch_name(std::string_view name) { return find(&Row::torch, name); }
std::string_view storage_class(Dtype dtype) { return row(dtype).storage; }
std::optional<Dtype> from_storage_class(std::string_view name) { return find(&Row::storage, name); }

namespace {

constexpr std::uint32_t kInfinity = 0x7F800000;

inline float widen_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

inline float widen_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t rest = (bits & 0x7FFFU) << 13;
  // From an integer, not from a subnormal f32: a process that flushes those to zero gets the same bits.
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(bits & 0x3FFU)) * 0x1p-24F;
  const std::uint32_t normal = rest + (112U << 23);
  const std::uint32_t special = kInfinity | rest;  // inf and NaN
  const std::uint32_t finite = rest < (1U << 23) ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(sign | (rest >= 0x0F800000 ? special : finite));
}

inline std::uint16_t narrow_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > kInfinity ? 0x7FC0 : rounded);
}

inline std::uint16_t narrow_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  // Normal results: rebias the exponent by 112 and round the 13 bits that fall away; a carry moves the exponent up.
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
  // Below 2^-14: adding 0.5 leaves the multiple of 2^-24 in the low bits, rounded by the addition itself.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000;
  const std::uint32_t finite = magnitude < (113U << 23) ? small : normal;
  const std::uint32_t large = magnitude > kInfinity ? 0x7E00 : 0x7C00;
  return static_cast<std::uint16_t>(sign | (magnitude >= 0x477FF000 ? large : finite));
}

}  // namespace

float bf16_to_f32(std::uint16_t bits) { return widen_bf16(bits); }
float f16_to_f32(std::uint16_t bits) { return widen_f16(bits); }
std::uint16_t f32_to_bf16(float value) { return narrow_bf16(value); }
std::uint16_t f32_to_f16(float value) { return narrow_f16(value); }

void bf16_to_f32(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = widen_bf16(from[i]);
}
void f16_to_f32(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = widen_f16(from[i]);
}
void f32_to_bf16(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = narrow_bf16(from[i]);
}
void f32_to_f16(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = narrow_f16(from[i]);
}

}  // namespace zs::tensorfile

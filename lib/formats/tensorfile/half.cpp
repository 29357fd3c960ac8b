// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/half.hpp"

#include <bit>

namespace zs::tensorfile {
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

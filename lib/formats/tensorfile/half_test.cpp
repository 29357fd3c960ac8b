// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/dtype.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace zs::tensorfile {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_CASE("half: every 16-bit float survives the way to f32 and back") {
  int wrong = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float f16 = f16_to_f32(bits), bf16 = bf16_to_f32(bits);
    if (!std::isnan(f16) && f32_to_f16(f16) != bits) ++wrong;
    if (!std::isnan(bf16) && f32_to_bf16(bf16) != bits) ++wrong;
    if (std::isnan(f16) != ((bits & 0x7FFF) > 0x7C00)) ++wrong;
    if (std::isnan(bf16) != ((bits & 0x7FFF) > 0x7F80)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("half: known values") {
  CHECK(f16_to_f32(0x3C00) == 1.0F);
  CHECK(f16_to_f32(0xC000) == -2.0F);
  CHECK(f16_to_f32(0x7BFF) == 65504.0F);
  CHECK(f16_to_f32(0x0001) == 0x1p-24F);
  CHECK(f16_to_f32(0x03FF) == 1023 * 0x1p-24F);
  CHECK(f16_to_f32(0x7C00) == kInf);
  CHECK(std::signbit(f16_to_f32(0x8000)));
  CHECK(bf16_to_f32(0x3F80) == 1.0F);
  CHECK(bf16_to_f32(0xFF80) == -kInf);
  CHECK(f32_to_bf16(std::nanf("")) == 0x7FC0);
  CHECK(f32_to_f16(std::copysign(std::nanf(""), -1.0F)) == 0xFE00);
}

TEST_CASE("half: ties go to the even neighbour, all else to the nearest") {
  // For each pair of neighbours: the middle, and one f32 step to either side of it.
  int wrong = 0;
  for (std::uint32_t i = 0; i < 0x7BFF; ++i) {
    const auto low = static_cast<std::uint16_t>(i), high = static_cast<std::uint16_t>(i + 1);
    const float middle = (f16_to_f32(low) + f16_to_f32(high)) / 2;
    if (f32_to_f16(middle) != (i % 2 == 0 ? low : high)) ++wrong;
    if (f32_to_f16(std::nextafter(middle, -kInf)) != low) ++wrong;
    if (f32_to_f16(std::nextafter(middle, kInf)) != high) ++wrong;
  }
  for (std::uint32_t i = 0; i < 0x7F7F; ++i) {
    const auto low = static_cast<std::uint16_t>(i), high = static_cast<std::uint16_t>(i + 1);
    const std::uint32_t middle = i << 16 | 0x8000;
    if (f32_to_bf16(std::bit_cast<float>(middle)) != (i % 2 == 0 ? low : high)) ++wrong;
    if (f32_to_bf16(std::bit_cast<float>(middle - 1)) != low) ++wrong;
    if (f32_to_bf16(std::bit_cast<float>(middle + 1)) != high) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("half: what is too large becomes infinity, what is too small zero") {
  CHECK(f32_to_f16(65519.996F) == 0x7BFF);
  CHECK(f32_to_f16(65520.0F) == 0x7C00);
  CHECK(f32_to_f16(-1e30F) == 0xFC00);
  CHECK(f32_to_f16(0x1p-25F) == 0);
  CHECK(f32_to_f16(std::nextafter(0x1p-25F, 1.0F)) == 1);
  CHECK(f32_to_f16(-0x1p-30F) == 0x8000);
  CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7F80);
}

}  // namespace
}  // namespace zs::tensorfile

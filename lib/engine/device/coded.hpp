// SPDX-License-Identifier: Apache-2.0
// Numbers in 8 bits, as bitsandbytes' block-wise optimizers keep their state (Dettmers et al. 2022): a tensor is cut
// into blocks of 256 elements; a block has a float32 scale, the largest magnitude in it, and an element has a code: the
// index of the table's value that is nearest to element / scale.
#pragma once
#include <algorithm>
#include <array>

#include "device/arithmetic.hpp"

namespace zs::device {

inline constexpr std::int64_t kCodedBlock = 256;

/// Values in ascending order: of [-1, 1] for signed numbers, else of [0, 1].
using CodeTable = std::array<float, 256>;

/// bitsandbytes' dynamic map: 0, 1 and, for each of seven decades, the middles of 2^i (unsigned: 2^(i+1)) equal parts
/// of [0.1, 1], i = 0 for the lowest; for signed numbers their negatives too.
constexpr CodeTable code_table(bool has_sign) {
  constexpr float kDecades[] = {1e-6F, 1e-5F, 1e-4F, 1e-3F, 1e-2F, 1e-1F, 1};
  CodeTable table{};
  std::size_t next = 0;
  table[next++] = 0, table[next++] = 1;
  for (int i = 0; i < 7; ++i) {
    const int parts = 1 << (has_sign ? i : i + 1);
    const float part = (1 - 0.1F) / static_cast<float>(parts);
    // Each half is counted from its own end, as torch.linspace does.
    const auto border = [&](int at) {
      return 2 * at < parts + 1 ? 0.1F + part * static_cast<float>(at) : 1 - part * static_cast<float>(parts - at);
    };
    for (int at = 0; at < parts; ++at) {
      const float value = kDecades[i] * ((border(at) + border(at + 1)) / 2);
      table[next++] = value;
      if (has_sign) table[next++] = -value;
    }
  }
  std::sort(table.begin(), table.end());
  return table;
}
inline constexpr CodeTable kSignedCodes = code_table(true), kUnsignedCodes = code_table(false);

/// The code of x, a number divided by its scale; of two values as near, the lower one's.
template <typename Table>
ZS_EVERYWHERE std::uint8_t code_of(const Table& table, float x) {
  int low = 0;
  for (int half = 128; half > 0; half /= 2) low += table[low + half] <= x ? half : 0;
  const bool up = low < 255 && table[low + 1] - x < x - table[low];
  return static_cast<std::uint8_t>(low + (up ? 1 : 0));
}
template <typename Table>
ZS_EVERYWHERE std::uint8_t code_of(const Table& table, float value, float scale) {
  return code_of(table, scale == 0 ? 0.0F : value / scale);
}

/// A magnitude as an integer that grows with it, and is largest for NaN: maxima do not depend on their order.
ZS_EVERYWHERE std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }

/// The block of an element, counted from the first block of a part that begins `offset` elements into its tensor.
ZS_EVERYWHERE std::int64_t coded_block(std::int64_t offset, std::int64_t i) {
  return (offset + i) / kCodedBlock - offset / kCodedBlock;
}
/// The number of blocks that a part of n elements touches.
constexpr std::int64_t coded_blocks(std::int64_t offset, std::int64_t n) {
  return n == 0 ? 0 : (offset + n - 1) / kCodedBlock - offset / kCodedBlock + 1;
}

}  // namespace zs::device

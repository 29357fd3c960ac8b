// SPDX-License-Identifier: Apache-2.0
// Matrices in 4 bits: QLoRA's NF4 (Dettmers et al. 2023), as bitsandbytes stores it. A matrix is cut into blocks of 64
// numbers in row-major order; a block has a scale, the largest magnitude in it, and a number has a code: the index of
// the value nearest to number / scale. The scales are float32 or, nested ("double quantization"), codes of 8 bits too.
#pragma once
#include <cstddef>
#include <span>

#include "device/coded.hpp"

namespace zs::device {

inline constexpr std::int64_t kNf4Block = 64;
inline constexpr std::array<float, 16> kNf4 = {-1.0F,
                                               -0.6961928009986877F,
                                               -0.5250730514526367F,
                                               -0.39491748809814453F,
                                               -0.28444138169288635F,
                                               -0.18477343022823334F,
                                               -0.09105003625154495F,
                                               0.0F,
                                               0.07958029955625534F,
                                               0.16093020141124725F,
                                               0.24611230194568634F,
                                               0.33791524171829224F,
                                               0.44070982933044434F,
                                               0.5626170039176941F,
                                               0.7229568362236023F,
                                               1.0F};

/// The places of a matrix's parts in its bytes. Each part begins at a multiple of 16:
///
///   codes      two in a byte, the first in its high half
///   scales     float32 each; or nested: a byte each, the index of a value in the table
///   table      nested: 256 values, float32
///   mean       nested: of the scales, float32
///   groups     nested: a float32 for each 256 scales: a scale is table[code] * group + mean
struct Nf4 {
  std::int64_t numel = 0;
  bool nested = false;

  std::int64_t blocks() const { return parts(numel, kNf4Block); }
  std::int64_t groups() const { return nested ? parts(blocks(), kCodedBlock) : 0; }
  std::int64_t codes_bytes() const { return parts(numel, 2); }
  std::int64_t scales_at() const { return whole(codes_bytes()); }
  std::int64_t table_at() const { return scales_at() + whole(blocks() * (nested ? 1 : kFloat)); }
  std::int64_t mean_at() const { return table_at() + kCodedBlock * kFloat; }
  std::int64_t groups_at() const { return mean_at() + kAligned; }
  std::int64_t bytes() const { return nested ? groups_at() + whole(groups() * kFloat) : table_at(); }

 private:
  static constexpr std::int64_t kFloat = 4, kAligned = 16;
  static constexpr std::int64_t parts(std::int64_t n, std::int64_t part) { return (n + part - 1) / part; }
  static constexpr std::int64_t whole(std::int64_t bytes) { return parts(bytes, kAligned) * kAligned; }
};

/// The parts of a matrix, for code that computes with them.
struct Nf4Parts {
  const std::uint8_t* codes;
  const float* scales;                ///< null if they are nested
  const std::uint8_t* nested_scales;  ///< of these
  const float *table, *mean, *groups;

  /// REQUIRES: `bytes` are of this form, at a multiple of 16.
  Nf4Parts(const std::byte* bytes, const Nf4& form)
      : codes(reinterpret_cast<const std::uint8_t*>(bytes)),
        scales(form.nested ? nullptr : reinterpret_cast<const float*>(bytes + form.scales_at())),
        nested_scales(reinterpret_cast<const std::uint8_t*>(bytes + form.scales_at())),
        table(reinterpret_cast<const float*>(bytes + form.table_at())),
        mean(reinterpret_cast<const float*>(bytes + form.mean_at())),
        groups(reinterpret_cast<const float*>(bytes + form.groups_at())) {}

  ZS_EVERYWHERE float scale(std::int64_t block) const {
    return scales ? scales[block] : table[nested_scales[block]] * groups[block / kCodedBlock] + *mean;
  }
};

/// The number nearest to x, of the type of `to`.
ZS_EVERYWHERE void narrow(float x, float& to) { to = x; }
ZS_EVERYWHERE void narrow(float x, Bfloat16& to) { to = to_bfloat16(x); }

/// The code of number i.
ZS_EVERYWHERE int nf4_code(const std::uint8_t* codes, std::int64_t i) {
  return i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
}

/// The bits of bitsandbytes' quantize_4bit on a processor, in the form's bytes. Of nested scales some numbers may have
/// other last bits than there, because PyTorch's depend on the processor: the mean, if float32 does not hold the sum,
/// and values of the table. REQUIRES: values.size() == form.numel, finite; bytes.size() == form.bytes(), at a multiple
/// of 16.
void to_nf4(std::span<const float> values, const Nf4& form, std::span<std::byte> bytes);

/// numbers[i] = the value of code i times the scale of its block: float32, or rounded to nearest even to bfloat16. On a
/// GPU in LibTorch's stream. REQUIRES: both are on one device, and have the form's sizes.
void from_nf4(const View& bytes, const Nf4& form, const View& numbers);

}  // namespace zs::device

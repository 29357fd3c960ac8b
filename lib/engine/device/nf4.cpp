// SPDX-License-Identifier: Apache-2.0
#include "device/nf4.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "device/backend.hpp"

namespace zs::device {
namespace {

/// The middles between neighbouring values.
constexpr auto kMiddles = [] {
  std::array<float, 15> middles{};
  for (std::size_t i = 0; i < middles.size(); ++i) middles[i] = (kNf4[i] + kNf4[i + 1]) / 2;
  return middles;
}();

/// The code of a number divided by its scale; in the middle between two values, the lower one's.
std::uint8_t nearest(float x) {
  int code = 0;
  for (const float middle : kMiddles) code += middle < x ? 1 : 0;
  return static_cast<std::uint8_t>(code);
}

/// Codes of a block, whose scale it returns. bitsandbytes multiplies a whole block by a reciprocal, and divides a part.
float quantize_block(std::span<const float> values, std::uint8_t* codes) {
  constexpr float kLeast = 1e-38F;
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  const bool whole = std::ssize(values) == kNf4Block;
  const float scale = whole ? most : std::max(most, kLeast), factor = 1 / std::max(most, kLeast);
  std::array<std::uint8_t, kNf4Block> found{};
  for (std::size_t i = 0; i < values.size(); ++i)
    found[i] = nearest(std::clamp(whole ? values[i] * factor : values[i] / scale, -1.0F, 1.0F));
  if (values.size() % 2 != 0) found[values.size()] = nearest(0);
  for (std::size_t i = 0; i < values.size(); i += 2)
    codes[i / 2] = static_cast<std::uint8_t>(found[i] << 4 | found[i + 1]);
  return scale;
}

void nest(std::span<const float> scales, const Nf4& form, std::byte* bytes) {
  auto* const codes = reinterpret_cast<std::uint8_t*>(bytes + form.scales_at());
  auto* const groups = reinterpret_cast<float*>(bytes + form.groups_at());
  double sum = 0;
  for (const float scale : scales) sum += scale;
  const float mean = static_cast<float>(sum) / static_cast<float>(scales.size());
  std::memcpy(bytes + form.table_at(), kSignedCodes.data(), sizeof kSignedCodes);
  std::memcpy(bytes + form.mean_at(), &mean, sizeof mean);
  for (std::size_t begin = 0; begin < scales.size(); begin += kCodedBlock) {
    const std::span<const float> group =
        scales.subspan(begin, std::min<std::size_t>(kCodedBlock, scales.size() - begin));
    float most = 0;
    for (const float scale : group) most = std::max(most, std::fabs(scale - mean));
    groups[begin / kCodedBlock] = most;
    for (std::size_t i = 0; i < group.size(); ++i) codes[begin + i] = code_of(kSignedCodes, group[i] - mean, most);
  }
}

template <typename T>
void widen_matrix(const std::byte* bytes, const Nf4& form, T* numbers) {
  const Nf4Parts parts(bytes, form);
  for (std::int64_t block = 0; block < form.blocks(); ++block) {
    const std::int64_t begin = block * kNf4Block, end = std::min(begin + kNf4Block, form.numel);
    const float scale = parts.scale(block);
    std::array<T, kNf4.size()> values{};
    for (std::size_t code = 0; code < values.size(); ++code) narrow(kNf4[code] * scale, values[code]);
    for (std::int64_t i = begin; i < end; ++i) numbers[i] = values[static_cast<std::size_t>(nf4_code(parts.codes, i))];
  }
}

}  // namespace

void from_nf4(const View& bytes, const Nf4& form, const View& numbers) {
  if (numbers.device.kind != Device::Kind::cpu)
    return cuda::function<void(const View&, const Nf4&, const View&)>("zs_cuda_from_nf4")(bytes, form, numbers);
  if (numbers.type == Type::float32) return widen_matrix(bytes.data, form, numbers.as<float>());
  widen_matrix(bytes.data, form, numbers.as<Bfloat16>());
}

void to_nf4(std::span<const float> values, const Nf4& form, std::span<std::byte> bytes) {
  std::memset(bytes.data(), 0, bytes.size());  // between parts
  std::vector<float> scales(static_cast<std::size_t>(form.blocks()));
  auto* const codes = reinterpret_cast<std::uint8_t*>(bytes.data());
  for (std::size_t block = 0; block < scales.size(); ++block) {
    const std::size_t begin = block * kNf4Block;
    scales[block] = quantize_block(values.subspan(begin, std::min<std::size_t>(kNf4Block, values.size() - begin)),
                                   codes + begin / 2);
  }
  if (form.nested)
    nest(scales, form, bytes.data());
  else
    std::memcpy(bytes.data() + form.scales_at(), scales.data(), scales.size() * sizeof(float));
}

}  // namespace zs::device

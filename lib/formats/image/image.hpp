// SPDX-License-Identifier: Apache-2.0
// Images to train on: from the bytes of a JPEG or PNG file to red, green and blue.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zs::image {

struct Image {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb{};  ///< height x width x 3
};

/// Grey, palette, CMYK and 16-bit images become RGB as Pillow's convert("RGB") has it: opacity is left out. Throws
/// zs::Error, led by `path`, at bytes that are neither format, cut short or damaged, and at more than kMostPixels.
Image decode(std::string_view bytes, const std::string& path);

/// Throws as decode() where that can be seen without decoding: another format, a file without its end.
void check(std::string_view bytes, const std::string& path);

/// What Pillow takes for an attack: 2^30 / 4 / 3 pixels.
inline constexpr std::int64_t kMostPixels = 89478485;

/// Whether a file's name says that it is one: *.jpg, *.jpeg, *.png, in any case.
bool names_image(std::string_view path);

}  // namespace zs::image

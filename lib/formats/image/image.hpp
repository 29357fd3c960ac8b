// SPDX-License-Identifier: Apache-2.0
// Images to train on: decodes JPEG and PNG files to RGB.
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

/// Converts grey, palette, CMYK and 16-bit images to RGB as Pillow's convert("RGB") does, without alpha. Throws
/// zs::Error, which begins with `path`, if the bytes are neither format, damaged, or have more than kMostPixels.
Image decode(std::string_view bytes, const std::string& path);

/// Throws as decode() for errors visible without decoding: another format, a truncated file.
void check(std::string_view bytes, const std::string& path);

/// Pillow's limit against decompression bombs: 2^30 / 4 / 3 pixels.
inline constexpr std::int64_t kMostPixels = 89478485;

/// Whether the file name has an image's extension: *.jpg, *.jpeg, *.png, in any case.
bool names_image(std::string_view path);

// The decoders, one per format: only for sources of this folder.
Image decode_jpeg(std::string_view bytes, const std::string& path);
Image decode_png(std::string_view bytes, const std::string& path);

/// Throws zs::Error if there are more pixels than kMostPixels, or none.
void check_size(std::int64_t width, std::int64_t height, const std::string& path);

}  // namespace zs::image

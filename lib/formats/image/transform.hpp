// SPDX-License-Identifier: Apache-2.0
// Transforms an image into a model's input: resizes, crops, mirrors, normalizes.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "image/image.hpp"

namespace zs::image {

/// A part of an image, in pixels.
struct Box {
  std::int64_t left = 0, top = 0, width = 0, height = 0;
};

enum class Filter { bilinear, bicubic };

/// The part, resized with antialiasing in the fixed-point arithmetic of Pillow's resize(BILINEAR) or resize(BICUBIC):
/// the same bytes. REQUIRES: the box is inside the image, sizes are at least 1.
Image resized(const Image& image, const Box& box, std::int64_t width, std::int64_t height,
              Filter filter = Filter::bilinear);

/// How images become samples. The defaults are the values of Hugging Face's image processor for ViT.
struct Transform {
  std::int64_t size = 224;    ///< side length of a sample in pixels
  bool augmentation = false;  ///< training: a random part, perhaps mirrored; evaluation: the middle
  bool middle = false;        ///< without augmentation: take the middle, too; false: squeeze all
  Filter filter = Filter::bilinear;
  std::array<double, 3> mean = {0.5, 0.5, 0.5}, std = {0.5, 0.5, 0.5};  ///< per channel, in 0 to 1
};

/// A random part: 8 to 100 % of the area, aspect ratio 3:4 to 4:3 (torchvision's RandomResizedCrop), and whether it is
/// mirrored. The same key gives the same result.
struct Chance {
  Box box;
  bool mirrored;
};
Chance chance(std::int64_t width, std::int64_t height, std::uint64_t key);

/// Writes an image to `out`, 3 x size x size. `key` seeds the randomness of training; evaluation has none.
void apply(const Transform& transform, const Image& image, bool training, std::uint64_t key, std::span<float> out);

}  // namespace zs::image

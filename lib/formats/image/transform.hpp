// SPDX-License-Identifier: Apache-2.0
// From an image to what a model reads: resized, cropped, turned about, normalised.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "image/image.hpp"

namespace zs::image {

/// Part of an image, in pixels.
struct Box {
  std::int64_t left = 0, top = 0, width = 0, height = 0;
};

/// The part, resized by triangles as wide as the scale (bilinear with antialias), in the fixed-point arithmetic of
/// Pillow's resize(BILINEAR): the same bytes. REQUIRES: the box is inside, sizes are at least 1.
Image resized(const Image& image, const Box& box, std::int64_t width, std::int64_t height);

/// How samples are made. The defaults are those of Hugging Face's image processor for ViT.
struct Transform {
  std::int64_t size = 224;    ///< pixels along a side of a sample
  bool augmentation = false;  ///< in training a random part and side, else the middle; without, the image is squeezed
  std::array<double, 3> mean = {0.5, 0.5, 0.5}, std = {0.5, 0.5, 0.5};  ///< of channels, which are 0 to 1
};

/// A random part: 8 to 100 % of the area, sides of 3:4 to 4:3 (torchvision's RandomResizedCrop), and whether it is
/// mirrored. The same key gives the same.
struct Chance {
  Box box;
  bool mirrored;
};
Chance chance(std::int64_t width, std::int64_t height, std::uint64_t key);

/// Puts an image into `out`, 3 x size x size. `key` decides what is random in training; of evaluations none is.
void apply(const Transform& transform, const Image& image, bool training, std::uint64_t key, std::span<float> out);

}  // namespace zs::image

// SPDX-License-Identifier: Apache-2.0
#include "image/transform.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

namespace zs::image {
namespace {

constexpr int kBits = 32 - 8 - 2;  // for a weight: 8 for a pixel, 2 to spare

/// The weight of a pixel so far away, and how far a filter reaches.
double weight(Filter filter, double away) {
  if (filter == Filter::bilinear) return away < 1 ? 1 - away : 0;
  constexpr double A = -0.5;
  if (away < 1) return ((A + 2) * away - (A + 3)) * away * away + 1;
  return away < 2 ? (((away - 5) * away + 8) * away - 4) * A : 0;
}
double reach(Filter filter) { return filter == Filter::bilinear ? 1 : 2; }

/// Weights of a row's or column's pixels for each pixel of the result.
struct Weights {
  struct Span {
    std::int64_t first, count;
  };
  std::vector<Span> spans;
  std::vector<std::int32_t> values;  // `most` a span
  std::int64_t most = 0;

  /// From `in` to `out` pixels.
  Weights(std::int64_t in, std::int64_t out, Filter filter) {
    const double scale = static_cast<double>(in) / static_cast<double>(out), wider = std::max(scale, 1.0),
                 support = reach(filter) * wider;
    most = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
    values.resize(static_cast<std::size_t>(out * most));
    std::vector<double> exact(static_cast<std::size_t>(most));
    for (std::int64_t i = 0; i < out; ++i) {
      const double center = (static_cast<double>(i) + 0.5) * scale;
      const std::int64_t first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5)),
                         end = std::min(in, static_cast<std::int64_t>(center + support + 0.5));
      double sum = 0;
      for (std::int64_t x = first; x < end; ++x) {
        const double away = std::fabs((static_cast<double>(x) - center + 0.5) * (1 / wider));
        sum += exact[static_cast<std::size_t>(x - first)] = weight(filter, away);
      }
      for (std::int64_t x = 0; x < end - first; ++x) {
        const double scaled = exact[static_cast<std::size_t>(x)] / sum * (1 << kBits);
        values[static_cast<std::size_t>(i * most + x)] = static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
      }
      spans.push_back({first, end - first});
    }
  }
  const std::int32_t* of(std::int64_t i) const { return values.data() + i * most; }
};

std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255)); }
constexpr std::int32_t kHalf = 1 << (kBits - 1);

}  // namespace

Image resized(const Image& image, const Box& box, std::int64_t width, std::int64_t height, Filter filter) {
  const std::uint8_t* const corner = image.rgb.data() + (box.top * image.width + box.left) * 3;
  std::vector<std::uint8_t> narrow(static_cast<std::size_t>(width * box.height * 3));
  if (width == box.width) {
    for (std::int64_t y = 0; y < box.height; ++y)
      std::copy_n(corner + y * image.width * 3, width * 3, narrow.data() + y * width * 3);
  } else {
    const Weights weights(box.width, width, filter);
    for (std::int64_t y = 0; y < box.height; ++y) {
      std::uint8_t* out = narrow.data() + y * width * 3;
      for (std::int64_t x = 0; x < width; ++x, out += 3) {
        const auto [first, count] = weights.spans[static_cast<std::size_t>(x)];
        const std::int32_t* const weight = weights.of(x);
        const std::uint8_t* in = corner + (y * image.width + first) * 3;
        std::int32_t r = kHalf, g = kHalf, b = kHalf;
        for (std::int64_t i = 0; i < count; ++i, in += 3) {
          r += in[0] * weight[i];
          g += in[1] * weight[i];
          b += in[2] * weight[i];
        }
        out[0] = rounded(r), out[1] = rounded(g), out[2] = rounded(b);
      }
    }
  }
  if (height == box.height) return {width, height, std::move(narrow)};
  Image result{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * 3))};
  const Weights weights(box.height, height, filter);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(width * 3));
  for (std::int64_t y = 0; y < height; ++y) {
    const auto [first, count] = weights.spans[static_cast<std::size_t>(y)];
    std::ranges::fill(sums, kHalf);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint8_t* const in = narrow.data() + (first + i) * width * 3;
      const std::int32_t weight = weights.of(y)[i];
      for (std::int64_t x = 0; x < width * 3; ++x) sums[static_cast<std::size_t>(x)] += in[x] * weight;
    }
    std::transform(sums.begin(), sums.end(), result.rgb.begin() + y * width * 3, rounded);
  }
  return result;
}

Chance chance(std::int64_t width, std::int64_t height, std::uint64_t key) {
  constexpr int kTries = 10;
  constexpr double kLeastArea = 0.08, kLeastRatio = 3.0 / 4, kMostRatio = 4.0 / 3;
  std::uint64_t drawn = 0;
  const auto random = [&] {  // of [0, 1)
    ++drawn;
    return static_cast<double>(XXH3_64bits_withSeed(&drawn, sizeof drawn, key) >> 11) * 0x1p-53;
  };
  const auto between = [&](std::int64_t most) {  // of [0, most]
    return static_cast<std::int64_t>(random() * static_cast<double>(most + 1));
  };
  const bool mirrored = random() < 0.5;
  const double area = static_cast<double>(width) * static_cast<double>(height);
  for (int i = 0; i < kTries; ++i) {
    const double part = area * (kLeastArea + random() * (1 - kLeastArea));
    const double ratio = std::exp(std::log(kLeastRatio) + random() * (std::log(kMostRatio) - std::log(kLeastRatio)));
    const auto w = std::llround(std::sqrt(part * ratio)), h = std::llround(std::sqrt(part / ratio));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    return {{between(width - w), between(height - h), w, h}, mirrored};
  }
  // An image far from square: the largest middle part.
  const double ratio = std::clamp(static_cast<double>(width) / static_cast<double>(height), kLeastRatio, kMostRatio);
  const std::int64_t w = std::clamp<std::int64_t>(std::llround(static_cast<double>(height) * ratio), 1, width),
                     h = std::clamp<std::int64_t>(std::llround(static_cast<double>(w) / ratio), 1, height);
  return {{(width - w) / 2, (height - h) / 2, w, h}, mirrored};
}

void apply(const Transform& transform, const Image& image, bool training, std::uint64_t key, std::span<float> out) {
  const std::int64_t S = transform.size;
  Box box{0, 0, image.width, image.height};
  bool mirrored = false;
  Image made;
  if (transform.augmentation ? !training : transform.middle) {
    // The shorter side becomes S, and the middle of the longer one stays (torchvision's Resize and CenterCrop).
    const std::int64_t shorter = std::min(image.width, image.height);
    const Image whole = resized(image, box, S * image.width / shorter, S * image.height / shorter, transform.filter);
    const auto before = [&](std::int64_t side) {  // to the even number, as Python rounds
      const std::int64_t more = side - S;
      return more / 2 + (more % 2 == 1 && more / 2 % 2 == 1);
    };
    made = resized(whole, {before(whole.width), before(whole.height), S, S}, S, S);
  } else {
    if (transform.augmentation) {
      const Chance by = chance(image.width, image.height, key);
      box = by.box;
      mirrored = by.mirrored;
    }
    made = resized(image, box, S, S, transform.filter);
  }
  for (std::size_t c = 0; c < 3; ++c) {
    std::array<float, 256> value;  // in float32 operation by operation, as torchvision has it
    for (std::size_t i = 0; i < value.size(); ++i)
      value[i] = (static_cast<float>(i) / 255.0F - static_cast<float>(transform.mean[c])) /
                 static_cast<float>(transform.std[c]);
    float* const plane = out.data() + c * static_cast<std::size_t>(S * S);
    for (std::int64_t y = 0; y < S; ++y) {
      for (std::int64_t x = 0; x < S; ++x) {
        const std::int64_t from = mirrored ? S - 1 - x : x;
        plane[y * S + x] = value[made.rgb[static_cast<std::size_t>((y * S + from) * 3) + c]];
      }
    }
  }
}

}  // namespace zs::image

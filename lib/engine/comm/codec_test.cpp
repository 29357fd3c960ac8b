// SPDX-License-Identifier: Apache-2.0
#include "comm/codec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/cases_test.hpp"
#include "device/tensor.hpp"

namespace zs::comm {
namespace {

using device::view;
using Floats = std::vector<float>;

std::int64_t length(const Floats& numbers) { return static_cast<std::int64_t>(numbers.size()); }

Floats numbers(std::int64_t n, int seed) {
  Floats numbers(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i)] = cases::value(seed, 3, i);
  return numbers;
}

/// What comes out of what goes in, by so many ranks, each of which encodes its slice.
Floats travelled(const Codec& codec, Floats in, int ranks = 1) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(codec.bytes()));
  for (int rank = 0; rank < ranks; ++rank) {
    const Slice local = slice(length(in), rank, ranks), part = slice(codec.bytes(), rank, ranks);
    codec.encode(view(in.data(), length(in)).part(local.begin, local.end), Codec::tiles(rank, ranks),
                 view(bytes.data(), codec.bytes()).part(part.begin, part.end));
  }
  Floats out(in.size());
  codec.decode(view(bytes.data(), codec.bytes()), {0, kTiles}, view(out.data(), length(out)));
  return out;
}

TEST_CASE("codec: what comes out is the nearest code times the block's scale, on every number of ranks the same") {
  for (const int bits : {8, 4}) {
    const float most = bits == 8 ? 127 : 7;
    for (const std::int64_t n : {1, 255, 256, 257, 1000, 131072, 100003}) {
      CAPTURE(bits);
      CAPTURE(n);
      const Codec codec(bits, n);
      Floats in = numbers(n, bits);
      const Floats out = travelled(codec, in);
      for (int tile = 0; tile < kTiles; ++tile) {
        const Slice whole = slice(n, tile, kTiles);
        for (std::int64_t begin = whole.begin; begin < whole.end; begin += Codec::kBlock) {
          const std::int64_t end = std::min(begin + Codec::kBlock, whole.end);
          float largest = 0;
          for (std::int64_t i = begin; i < end; ++i)
            largest = std::max(largest, std::fabs(in[static_cast<std::size_t>(i)]));
          for (std::int64_t i = begin; i < end; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const float scale = largest / most, code = largest > 0 ? std::nearbyint(in[at] / scale) : 0;
            cases::require_bits(out[at], code * scale + 0.0F, "travelled", i);
          }
        }
      }
      for (const int ranks : {2, 8, 256}) CHECK(travelled(codec, in, ranks) == out);
      Floats bounds(in.size());
      codec.bound(view(in.data(), n), {0, kTiles}, view(bounds.data(), n));
      float worst = 0;
      for (std::size_t i = 0; i < in.size(); ++i) worst = std::max(worst, std::fabs(in[i] - out[i]) / bounds[i]);
      CHECK(worst <= 1);
      if (n > 1000) CHECK(worst > 0.9);  // it is no looser than it must be
    }
  }
}

TEST_CASE("codec: bytes are one or half for each number, and a scale for each block") {
  CHECK(Codec(8, 256 * 1280).bytes() == 256 * (1280 + 4 * 10));
  CHECK(Codec(4, 256 * 1280).bytes() == 256 * (640 + 4 * 10));
  CHECK(Codec(8, 256 * 129).bytes() == 256 * (132 + 4 * 2));  // whole words
  CHECK(Codec(4, 1).bytes() == 256 * (4 + 4));
  CHECK(Codec(8, 0).bytes() == 0);
}

TEST_CASE("codec: zeros stay zeros, and what is not finite is not hidden") {
  for (const int bits : {8, 4}) {
    const std::int64_t n = 256 * 200;
    const Codec codec(bits, n);
    CHECK(travelled(codec, Floats(static_cast<std::size_t>(n))) == Floats(static_cast<std::size_t>(n)));
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      Floats in = numbers(n, 1);
      in[5] = bad;  // in the first block of the first tile
      const Floats out = travelled(codec, in);
      for (std::size_t i = 0; i < 128; ++i) CHECK(std::isnan(out[i]));
      CHECK(std::all_of(out.begin() + 128, out.end(), [](float x) { return std::isfinite(x); }));
    }
  }
}

TEST_CASE("codec: numbers of 16 bits come out in 16 bits, the float32 ones rounded once more") {
  const std::int64_t n = 1000;
  const Codec codec(8, n);
  const at::Tensor wide = device::tensor(view(numbers(n, 2).data(), n)).clone().to(at::kBFloat16).to(at::kFloat);
  const at::Tensor narrow = wide.to(at::kBFloat16);
  const Floats out = travelled(codec, {wide.data_ptr<float>(), wide.data_ptr<float>() + n});
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(codec.bytes()));
  codec.encode(view(narrow), {0, kTiles}, view(bytes.data(), codec.bytes()));
  codec.decode(view(bytes.data(), codec.bytes()), {0, kTiles}, view(narrow));
  CHECK(at::equal(narrow, at::tensor(at::ArrayRef<float>(out)).to(at::kBFloat16)));
}

}  // namespace
}  // namespace zs::comm

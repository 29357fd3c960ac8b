// SPDX-License-Identifier: Apache-2.0
// By LibTorch's elementwise operations, each rounded correctly on every device: the same bits on all. Divisors are
// tensors: by a number of the host a GPU does not divide, it multiplies with the inverse.
#include "comm/codec.hpp"

#include <limits>

#include "device/tensor.hpp"

namespace zs::comm {
namespace {

using device::View;

std::int64_t whole_parts(std::int64_t n, std::int64_t part) { return (n + part - 1) / part; }

/// Marks the elements of [tiles][widest] that hold a number: all, unless the tiles have two lengths.
at::Tensor places(std::int64_t n, Slice tiles, std::int64_t widest, const at::Device& device) {
  const at::Tensor used = at::empty({tiles.size(), widest}, at::kBool);
  auto* at = used.data_ptr<bool>();
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const std::int64_t size = slice(n, tile, kTiles).size();
    for (std::int64_t i = 0; i < widest; ++i) *at++ = i < size;
  }
  return used.to(device);
}

/// The tiles' numbers as float32[tiles][blocks][kBlock], 0 where there is none.
at::Tensor blocks_of(const View& numbers, std::int64_t n, Slice tiles, std::int64_t widest, std::int64_t blocks) {
  const at::Tensor flat = device::tensor(numbers).to(at::kFloat);
  at::Tensor rows = at::zeros({tiles.size(), blocks * Codec::kBlock}, flat.options());
  at::Tensor used = rows.narrow(1, 0, widest);
  if (n % kTiles == 0)
    used.copy_(flat.view({tiles.size(), widest}));
  else
    used.copy_(at::zeros({tiles.size(), widest}, flat.options())
                   .masked_scatter_(places(n, tiles, widest, flat.device()), flat));
  return rows.view({tiles.size(), blocks, Codec::kBlock});
}

/// The other way round.
void put_back(const at::Tensor& values, std::int64_t n, Slice tiles, std::int64_t widest, const View& numbers) {
  const at::Tensor used = values.reshape({tiles.size(), -1}).narrow(1, 0, widest);
  const at::Tensor flat = device::tensor(numbers);
  if (n % kTiles == 0)
    flat.view({tiles.size(), widest}).copy_(used);
  else
    flat.copy_(used.masked_select(places(n, tiles, widest, flat.device())));
}

}  // namespace

Codec::Codec(int bits, std::int64_t n)
    : bits_(bits), n_(n), widest_(whole_parts(n, kTiles)), blocks_(whole_parts(widest_, kBlock)) {
  constexpr std::int64_t kScale = sizeof(float);
  tile_bytes_ = blocks_ * kScale + whole_parts(widest_ * bits, 8 * kScale) * kScale;  // scales stay aligned
}

void Codec::encode(const View& numbers, Slice tiles, const View& bytes) const {
  if (n_ == 0) return;
  const at::NoGradGuard no_grad;
  const int most = (1 << (bits_ - 1)) - 1;
  const at::Tensor values = blocks_of(numbers, n_, tiles, widest_, blocks_);
  const at::Tensor scales = values.abs().amax(-1, /*keepdim=*/true).div(at::full({}, most, values.options()));
  // 0/0 in a block of zeros is code 0; in one that is not finite the scale says so.
  at::Tensor codes = values.div(scales)
                         .round_()
                         .nan_to_num_(0.0, static_cast<double>(most), -static_cast<double>(most))
                         .clamp_(-most, most)
                         .reshape({tiles.size(), -1});
  const at::Tensor out = device::tensor(bytes).view({tiles.size(), tile_bytes_});
  const std::int64_t head = blocks_ * static_cast<std::int64_t>(sizeof(float)), rest = tile_bytes_ - head;
  out.narrow(1, 0, head).copy_(scales.reshape({tiles.size(), blocks_}).contiguous().view(at::kByte));
  const std::int64_t room = rest * 8 / bits_;
  if (codes.size(1) < room) codes = at::constant_pad_nd(codes, {0, room - codes.size(1)});
  codes = codes.narrow(1, 0, room).add(128).to(at::kByte);
  if (bits_ == 4) {
    const at::Tensor pairs = codes.sub(120).view({tiles.size(), rest, 2});  // 1 ... 15
    codes = pairs.select(2, 0).add(pairs.select(2, 1).mul(16));
  }
  out.narrow(1, head, rest).copy_(codes);
}

void Codec::decode(const View& bytes, Slice tiles, const View& numbers) const {
  if (n_ == 0) return;
  const at::NoGradGuard no_grad;
  const at::Tensor in = device::tensor(bytes).view({tiles.size(), tile_bytes_});
  const std::int64_t head = blocks_ * static_cast<std::int64_t>(sizeof(float)), rest = tile_bytes_ - head;
  const at::Tensor scales = in.narrow(1, 0, head).contiguous().view(at::kFloat).view({tiles.size(), blocks_, 1});
  at::Tensor codes = in.narrow(1, head, rest);
  if (bits_ == 4) codes = at::stack({codes.bitwise_and(15), codes.div(16, "floor")}, 2).reshape({tiles.size(), -1});
  codes = codes.to(at::kFloat).sub(bits_ == 4 ? 8 : 128);
  const std::int64_t padded = blocks_ * kBlock;
  codes = codes.size(1) < padded ? at::constant_pad_nd(codes, {0, padded - codes.size(1)}) : codes.narrow(1, 0, padded);
  put_back(codes.reshape({tiles.size(), blocks_, kBlock}).mul(scales), n_, tiles, widest_, numbers);
}

void Codec::bound(const View& numbers, Slice tiles, const View& bounds) const {
  if (n_ == 0) return;
  const at::NoGradGuard no_grad;
  // Half a step of the code, and further rounding: to the code, from it, to the output type, and in sums over up to 2^8
  // leaves.
  const float rounding = numbers.type == device::Type::float32 ? 1e-6F : 0x1p-8F;
  const auto most = static_cast<float>((1 << (bits_ - 1)) - 1);
  const at::Tensor values = blocks_of(numbers, n_, tiles, widest_, blocks_).abs();
  const at::Tensor half =
      values.amax(-1, /*keepdim=*/true).div(at::full({}, 2 * most, values.options())).mul(1 + 1e-5F);
  const at::Tensor rounded =
      values.add(half).mul(rounding).add(half).add(std::numeric_limits<float>::min()).nan_to_num(0.0, 0.0, 0.0);
  put_back(rounded, n_, tiles, widest_, bounds);
}

}  // namespace zs::comm

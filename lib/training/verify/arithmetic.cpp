// SPDX-License-Identifier: Apache-2.0
#include "verify/arithmetic.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace zs::verify {
namespace {

void round_block(float* begin, const float* end, float most) {
  float largest = 0;
  bool finite = true;
  for (const float* x = begin; x < end; ++x) {
    largest = std::max(largest, std::fabs(*x));
    finite = finite && std::isfinite(*x);
  }
  const float scale = largest / most;
  for (float* x = begin; x < end; ++x) {
    const float code =
        scale > 0 ? std::clamp(std::nearbyint(*x / scale), -most, most) + 0.0F : 0;  // integers have no -0
    *x = finite ? code * scale : std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace

void as_float8(const std::vector<unit::Parameter>& parameters, std::vector<at::Tensor>& unit) {
  const at::Tensor most = at::full({}, 448.0F);
  std::map<int, at::Tensor> largest;
  for (std::size_t i = 0; i < unit.size(); ++i) {
    const int scale = parameters[i].float8_scale;
    if (scale < 0) continue;
    const at::Tensor peak = unit[i].abs().max().to(at::kFloat);
    largest[scale] = largest.contains(scale) ? at::maximum(largest[scale], peak) : peak;
  }
  for (std::size_t i = 0; i < unit.size(); ++i) {
    if (parameters[i].float8_scale < 0) continue;
    const at::Tensor& peak = largest[parameters[i].float8_scale];
    const at::Tensor scale = most.div(peak).clamp_max(std::numeric_limits<float>::max());
    const at::Tensor rounded = unit[i].to(at::kFloat).mul(scale).to(at::kFloat8_e4m3fn).to(at::kFloat);
    const at::Tensor back = at::where(rounded.abs() == most, rounded.sign().mul(peak), rounded.mul(scale.reciprocal()));
    unit[i] = back.to(unit[i].scalar_type());
  }
}

at::Tensor in_8_bits(const at::Tensor& values, bool has_sign) {
  std::vector<at::Tensor> codes = {at::zeros({1}), at::ones({1})};
  for (int decade = 0; decade < 7; ++decade) {
    const int parts = (has_sign ? 1 : 2) << decade;
    const at::Tensor index = at::arange(parts + 1, at::kFloat);
    const float part = (1 - 0.1F) / static_cast<float>(parts);
    const at::Tensor borders =
        at::where(index * 2 < parts + 1, index.mul(part).add(0.1F), index.sub(parts).mul(part).add(1));
    const at::Tensor middles = borders.slice(0, 0, parts).add(borders.slice(0, 1)).div(2).mul(std::pow(10, decade - 6));
    codes.push_back(middles);
    if (has_sign) codes.push_back(-middles);
  }
  const at::Tensor table = std::get<0>(at::cat(codes).sort());
  constexpr std::int64_t kBlock = 256, kAtOnce = 64;
  const std::int64_t n = values.numel(), blocks = (n + kBlock - 1) / kBlock;
  const at::Tensor padded = at::zeros({blocks * kBlock});
  padded.slice(0, 0, n).copy_(values.flatten());
  const at::Tensor rows = padded.view({blocks, kBlock});
  for (std::int64_t begin = 0; begin < blocks; begin += kAtOnce) {
    const at::Tensor some = rows.slice(0, begin, std::min(blocks, begin + kAtOnce));
    const at::Tensor scale = some.abs().amax(1, /*keepdim=*/true);
    const at::Tensor share = some.div(at::where(scale == 0, at::ones_like(scale), scale));
    some.copy_(table.index({share.unsqueeze(2).sub(table).abs().argmin(2)}).mul(scale));
  }
  return padded.slice(0, 0, n).view(values.sizes()).to(values.device()).clone();
}

at::Tensor as_nf4(const at::Tensor& matrix, bool nested) {
  // The quantiles of a normal distribution, by Dettmers et al. 2023, as bitsandbytes rounds them.
  const at::Tensor values = at::tensor(
      {-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0},
      at::kFloat);
  const at::Tensor flat = matrix.reshape({-1}).to(at::kFloat);
  const std::int64_t rest = (64 - flat.numel() % 64) % 64;
  const at::Tensor blocks = at::constant_pad_nd(flat, {0, rest}).reshape({-1, 64});
  at::Tensor scales = blocks.abs().amax(1, /*keepdim=*/true);
  const at::Tensor least = scales.clamp_min(1e-38F);
  at::Tensor parts = blocks * least.reciprocal();
  if (rest > 0) parts[-1] = blocks[-1] / least[-1];
  const at::Tensor middles = (values.narrow(0, 0, 15) + values.narrow(0, 1, 15)) / 2;
  const at::Tensor codes = at::bucketize(parts.clamp(-1, 1), middles);
  if (nested) {
    const at::Tensor mean = scales.sum(at::kDouble).to(at::kFloat) / static_cast<float>(scales.numel());
    scales = in_8_bits(scales - mean, /*has_sign=*/true) + mean;
  }
  const at::Tensor numbers = values.index_select(0, codes.reshape({-1})).reshape({-1, 64}) * scales;
  return numbers.reshape({-1}).narrow(0, 0, flat.numel()).reshape(matrix.sizes());
}

std::vector<at::Tensor> as_integers(const std::vector<at::Tensor>& unit, int bits) {
  std::vector<at::Tensor> flats;
  for (const at::Tensor& tensor : unit) flats.push_back(tensor.detach().to(at::kCPU).to(at::kFloat).reshape({-1}));
  const at::Tensor flat = at::cat(flats);
  auto* const values = flat.data_ptr<float>();
  const auto most = static_cast<float>((1 << (bits - 1)) - 1);
  for (std::int64_t tile = 0; tile < 256; ++tile) {
    const std::int64_t begin = flat.numel() * tile / 256, end = flat.numel() * (tile + 1) / 256;
    for (std::int64_t block = begin; block < end; block += 128)
      round_block(values + block, values + std::min(block + 128, end), most);
  }
  std::vector<at::Tensor> rounded;
  std::int64_t at = 0;
  for (const at::Tensor& tensor : unit) {
    rounded.push_back(flat.narrow(0, at, tensor.numel()).view(tensor.sizes()).to(tensor.scalar_type()).clone());
    at += tensor.numel();
  }
  return rounded;
}

}  // namespace zs::verify

// SPDX-License-Identifier: Apache-2.0
#include "verify/arithmetic.hpp"

#include <ATen/ops/bucketize.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

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
    const at::Tensor its = unit[i].abs().max().to(at::kFloat);
    largest[scale] = largest.contains(scale) ? at::maximum(largest[scale], its) : its;
  }
  for (std::size_t i = 0; i < unit.size(); ++i) {
    if (parameters[i].float8_scale < 0) continue;
    const at::Tensor& its = largest[parameters[i].float8_scale];
    const at::Tensor scale = most.div(its).clamp_max(std::numeric_limits<float>::max());
    const at::Tensor rounded = unit[i].to(at::kFloat).mul(scale).to(at::kFloat8_e4m3fn).to(at::kFloat);
    const at::Tensor back = at::where(rounded.abs() == most, rounded.sign().mul(its), rounded.mul(scale.reciprocal()));
    unit[i] = back.to(unit[i].scalar_type());
  }
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
    // bitsandbytes' dynamic map of 8 bits with a sign: middles of 2^i parts of a decade.
    std::vector<at::Tensor> map = {at::tensor({0.0F, 1.0F})};
    for (int i = 0; i < 7; ++i) {
      const at::Tensor borders = at::linspace(0.1, 1, (1 << i) + 1, at::kFloat);
      const at::Tensor decade =
          (borders.slice(0, 0, -1) + borders.slice(0, 1)) / 2 * static_cast<float>(std::pow(10.0, i - 6));
      map.push_back(decade), map.push_back(-decade);
    }
    const at::Tensor table = std::get<0>(at::cat(map).sort());
    const at::Tensor mean = scales.sum(at::kDouble).to(at::kFloat) / static_cast<float>(scales.numel());
    std::vector<at::Tensor> widened;
    for (const at::Tensor& group : (scales.reshape({-1}) - mean).split(256)) {
      const at::Tensor most = group.abs().max();
      const at::Tensor distance = (group.unsqueeze(1) / most - table).abs();
      widened.push_back(table.index_select(0, distance.argmin(1)) * most + mean);
    }
    scales = at::cat(widened).reshape({-1, 1});
  }
  const at::Tensor numbers = values.index_select(0, codes.reshape({-1})).reshape({-1, 64}) * scales;
  return numbers.reshape({-1}).narrow(0, 0, flat.numel()).reshape(matrix.sizes());
}

std::vector<at::Tensor> as_integers(const std::vector<at::Tensor>& unit, int bits) {
  std::vector<at::Tensor> flats;
  for (const at::Tensor& tensor : unit) flats.push_back(tensor.detach().to(at::kCPU).to(at::kFloat).reshape({-1}));
  const at::Tensor all = at::cat(flats);
  auto* const values = all.data_ptr<float>();
  const auto most = static_cast<float>((1 << (bits - 1)) - 1);
  for (std::int64_t tile = 0; tile < 256; ++tile) {
    const std::int64_t begin = all.numel() * tile / 256, end = all.numel() * (tile + 1) / 256;
    for (std::int64_t block = begin; block < end; block += 128)
      round_block(values + block, values + std::min(block + 128, end), most);
  }
  std::vector<at::Tensor> rounded;
  std::int64_t at = 0;
  for (const at::Tensor& tensor : unit) {
    rounded.push_back(all.narrow(0, at, tensor.numel()).view(tensor.sizes()).to(tensor.scalar_type()).clone());
    at += tensor.numel();
  }
  return rounded;
}

}  // namespace zs::verify

// SPDX-License-Identifier: Apache-2.0
#include "verify/arithmetic.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
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

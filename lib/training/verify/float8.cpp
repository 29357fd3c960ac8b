// SPDX-License-Identifier: Apache-2.0
#include "verify/float8.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>

#include <limits>
#include <map>

namespace zs::verify {

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

}  // namespace zs::verify

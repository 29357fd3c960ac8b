// SPDX-License-Identifier: Apache-2.0
#include "verify/integers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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

// SPDX-License-Identifier: Apache-2.0
#include "unit/autocast.hpp"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include "base/error.hpp"

namespace zs::unit {
namespace {

void enable(at::DeviceType device, bool on, at::ScalarType type) {
  namespace autocast = at::autocast;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  if (on) autocast::set_autocast_dtype(device, type);
  autocast::set_autocast_enabled(device, on);
#else
  if (device == at::kCPU) {
    if (on && type != at::kBFloat16)
      throw Error("the autocast of LibTorch " TORCH_VERSION " on processors is only bfloat16: build with 2.11");
    if (on) autocast::set_autocast_cpu_dtype(type);
    autocast::set_cpu_enabled(on);
  } else {
    if (on) autocast::set_autocast_gpu_dtype(type);
    autocast::set_enabled(on);
  }
#endif
  autocast::set_autocast_cache_enabled(!on);
}

}  // namespace

Autocast::Autocast(at::DeviceType device, at::ScalarType type) : device_(device), on_(type != at::kFloat) {
  if (on_) enable(device_, true, type);
}

Autocast::~Autocast() {
  if (on_) enable(device_, false, at::kFloat);
}

}  // namespace zs::unit

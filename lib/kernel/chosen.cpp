// SPDX-License-Identifier: Apache-2.0
#include "device/backend.hpp"
#include "kernel/kernels.hpp"

namespace zs::kernel {
namespace {

/// A GPU's kernels, with LibTorch's operations where its library has none of its own.
Kernels completed(Kernels kernels) {
  const auto fill = [](auto& kernel, auto plain) {
    if (!kernel) kernel = plain;
  };
  fill(kernels.rms_norm, plain().rms_norm);
  fill(kernels.project, plain().project);
  fill(kernels.swiglu, plain().swiglu);
  fill(kernels.rotate, plain().rotate);
  fill(kernels.grouped_attention, plain().grouped_attention);
  return kernels;
}

}  // namespace

const Kernels& chosen(bool fused, at::DeviceType device) {
  if (!fused) return plain();
  if (device == at::kCPU) return kernel::fused();
  static const Kernels gpu = completed(*device::cuda::function<const Kernels*()>("zs_cuda_kernels")());
  return gpu;
}

void allow_tf32(bool allow) {
  at::globalContext().setAllowTF32CuBLAS(allow);
  if (device::cuda::loaded()) device::cuda::function<void(bool)>("zs_cuda_allow_tf32")(allow);
}

}  // namespace zs::kernel

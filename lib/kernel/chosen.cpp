// SPDX-License-Identifier: Apache-2.0
#include "device/backend.hpp"
#include "kernel/kernels.hpp"

namespace zs::kernel {

const Kernels& chosen(bool fused, at::DeviceType device) {
  if (!fused) return plain();
  if (device == at::kCPU) return kernel::fused();
  return *device::cuda::function<const Kernels*()>("zs_cuda_kernels")();
}

void allow_tf32(bool allow) {
  at::globalContext().setAllowTF32CuBLAS(allow);
  if (device::cuda::loaded()) device::cuda::function<void(bool)>("zs_cuda_allow_tf32")(allow);
}

}  // namespace zs::kernel

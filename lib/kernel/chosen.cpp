// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "kernel/kernels.hpp"

namespace zs::kernel {

const Kernels& chosen(bool fused, at::DeviceType device) {
  if (!fused) return plain();
  if (device == at::kCPU) return kernel::fused();
#ifdef ZS_CUDA
  if (device == at::kCUDA) return cuda::fused();
#endif
  throw Error("this zs was built without fused kernels for " + at::DeviceTypeName(device, true));
}

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "kernel/kernels.hpp"

#ifdef ZS_CUDA
#include "kernel/matmul.hpp"
#endif

namespace zs::kernel {

void allow_tf32(bool allow) {
  at::globalContext().setAllowTF32CuBLAS(allow);
#ifdef ZS_CUDA
  cuda::allow_tf32(allow);
#endif
}

const Kernels& chosen(bool fused, at::DeviceType device) {
  if (!fused) return plain();
  if (device == at::kCPU) return kernel::fused();
#ifdef ZS_CUDA
  if (device == at::kCUDA) return cuda::fused();
#endif
  throw Error("this zs was built without fused kernels for " + at::DeviceTypeName(device, true));
}

}  // namespace zs::kernel

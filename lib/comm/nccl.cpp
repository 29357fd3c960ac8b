// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl.hpp"

#include "device/backend.hpp"

namespace zs::comm {

std::unique_ptr<Group> nccl(std::unique_ptr<Group> host, const device::Device& device, const Options& options) {
  const auto make = device::cuda::function<Group*(Group*, const device::Device&, const Options&)>("zs_cuda_nccl");
  return std::unique_ptr<Group>(make(host.release(), device, options));
}

}  // namespace zs::comm

// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl.hpp"

#include <map>

#include "comm/nodes.hpp"
#include "device/backend.hpp"

namespace zs::comm {

std::string shared_gpu(Group& host, const device::Device& device) {
  const std::string mine = host.host(host.rank()) + " " + device::cuda::backend().bus_id(device.index);
  const auto all = host.all_gather_object(mine, "GPUs of the ranks");
  std::map<std::string, int> taken;
  for (int rank = 0; rank < host.size(); ++rank) {
    const auto [place, fresh] = taken.emplace(all[static_cast<std::size_t>(rank)], rank);
    if (!fresh)
      return "ranks " + std::to_string(place->second) + " and " + std::to_string(rank) + " share the GPU " +
             place->first;
  }
  return "";
}

std::unique_ptr<Group> nccl(std::unique_ptr<Group> host, const device::Device& device, const Options& options,
                            bool repeat) {
  const auto make =
      device::cuda::function<Group*(Group*, const device::Device&, const Options&, int, bool)>("zs_cuda_nccl");
  const int node = ranks_of_node(*host);
  return std::unique_ptr<Group>(make(host.release(), device, options, node, repeat));
}

}  // namespace zs::comm

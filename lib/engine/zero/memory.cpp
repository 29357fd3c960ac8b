// SPDX-License-Identifier: Apache-2.0
#include "zero/memory.hpp"

namespace zs::zero {
namespace {

/// The store for the data of an operation: `offloaded` if that is not device memory, else the place to which the passes
/// of one of the plans move it.
std::unique_ptr<Store> store(Place offloaded, plan::Kind moves, const device::Device& device, const Plans& plans,
                             const Offload& offload) {
  const Place place = offloaded != Place::device || !plans.have(moves) ? offloaded : offload.passes;
  if (place == Place::device) return nullptr;
  return place == Place::host ? host_store(device) : file_store(device, offload.nvme_path);
}

}  // namespace

Memory::Memory(comm::Group& group, const Plans& plans, const Settings& settings) : pool(group) {
  const auto made = [&](Place offloaded, plan::Kind moves) {
    return store(offloaded, moves, group.device(), plans, settings.offload);
  };
  if (settings.trains) optimizer = made(settings.offload.optimizer, plan::Kind::store);
  parameters = made(settings.offload.parameters, plan::Kind::store_shard);
  inputs = made(Place::device, plan::Kind::store_input);
  if (const int secondary = plans.current().shape.secondary; secondary > 0) {
    secondary_group = group.split(group.rank() / secondary, "ranks of a secondary partition");
    secondary_pool.emplace(*secondary_group);
  }
  if (const int experts = plans.current().shape.experts; experts > 1) {
    replicas = group.split(group.rank() % experts, "ranks with the same experts");
    replica_pool.emplace(*replicas);
  }
}

}  // namespace zs::zero

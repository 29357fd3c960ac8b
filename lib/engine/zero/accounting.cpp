// SPDX-License-Identifier: Apache-2.0
#include "zero/accounting.hpp"

#include <set>
#include <string>

#include "comm/nodes.hpp"

namespace zs::zero {
namespace {

int bytes_per_parameter(const Engine& engine) { return static_cast<int>(at::elementSize(engine.settings().dtype)); }

}  // namespace

std::int64_t state_bytes(Engine& engine) {
  const Memory& memory = engine.memory();
  std::int64_t bytes = memory.pool.bytes() + memory.workspace.memory.bytes();
  for (const auto* const pool : {&memory.secondary_pool, &memory.replica_pool}) bytes += *pool ? (*pool)->bytes() : 0;
  for (UnitState& state : engine.states()) {
    const OffloadableBuffer* const shard = state.parameters.shard();
    bytes += state.optimizer->bytes() + (shard ? shard->resident_bytes() : 0);
  }
  for (const auto* const store : {&memory.optimizer, &memory.parameters})
    bytes += *store ? (*store)->staging_bytes() : 0;
  return bytes;
}

double ideal_state_bytes(const Engine& engine) {
  return plan::state_bytes(engine.plan().shape, bytes_per_parameter(engine));
}

double ideal_comm_bytes(const Engine& engine) {
  return plan::sent_bytes(plan::baseline(engine.plan().shape), bytes_per_parameter(engine));
}

std::optional<double> ideal_bytes_between_nodes(const Engine& engine) {
  const comm::Group& group = engine.group();
  std::set<std::string> hosts;
  const int node = comm::ranks_of_first_node(group);
  for (int rank = 0; rank < group.size(); ++rank) {
    hosts.insert(group.host(rank));
    if (group.host(rank) != group.host(rank / node * node)) return {};
  }
  if (static_cast<int>(hosts.size()) * node != group.size()) return {};
  return plan::sent_between_nodes(plan::baseline(engine.plan().shape), bytes_per_parameter(engine), node);
}

}  // namespace zs::zero

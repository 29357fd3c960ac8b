// SPDX-License-Identifier: Apache-2.0
// Memory for one rank's model state: pools of device memory, and stores for offloaded state.
#pragma once
#include <memory>
#include <optional>

#include "zero/packed.hpp"
#include "zero/plans.hpp"
#include "zero/pool.hpp"
#include "zero/store.hpp"

namespace zs::zero {

struct Memory {
  /// COLLECTIVE.
  Memory(comm::Group& group, const Plans& plans, const Settings& settings);

  Pool pool;
  Workspace workspace;                           ///< for units with matrices in 4 bits
  std::unique_ptr<comm::Group> secondary_group;  ///< of the ranks that share a secondary partition, or null
  std::optional<Pool> secondary_pool;
  std::unique_ptr<comm::Group> replicas;  ///< of the ranks with the same experts, where these are divided, or null
  std::optional<Pool> replica_pool;
  std::unique_ptr<Store> optimizer, parameters, inputs;  ///< null: in device memory
};

}  // namespace zs::zero

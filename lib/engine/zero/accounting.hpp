// SPDX-License-Identifier: Apache-2.0
// The memory and network use of an engine's training: actual, and by the formulas of plan.
#pragma once
#include <cstdint>
#include <optional>

#include "zero/engine.hpp"

namespace zs::zero {

/// Bytes of model state that this rank has allocated in device memory: parameters, gradients, optimizer state, and the
/// buffers for gathered parameters, sums of gradients and offloaded state in use. After a step this is the peak of
/// training.
std::int64_t state_bytes(Engine& engine);

/// By the formulas: bytes of parameters, gradients and optimizer state only, and bytes sent in a step without passes.
double ideal_state_bytes(const Engine& engine);
double ideal_comm_bytes(const Engine& engine);
/// The same for bytes to other nodes; nothing if ranks are not spread evenly over nodes, in order.
std::optional<double> ideal_bytes_between_nodes(const Engine& engine);

}  // namespace zs::zero

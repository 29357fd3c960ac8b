// SPDX-License-Identifier: Apache-2.0
// What an engine's training takes of memory and network, as it is and as the formulas of plan say.
#pragma once
#include <cstdint>
#include <optional>

#include "zero/engine.hpp"

namespace zs::zero {

/// Bytes of model state that this rank has allocated in device memory: parameters, gradients, optimizer state, and the
/// buffers in which parameters are gathered, gradients summed, and what is offloaded is used. After a step it is the
/// peak of training.
std::int64_t state_bytes(Engine& engine);
/// Bytes of what is offloaded.
std::int64_t offloaded_bytes(const Engine& engine);

/// What the formulas say of parameters, gradients and optimizer state alone, and of a step before any pass.
double ideal_state_bytes(const Engine& engine);
double ideal_comm_bytes(const Engine& engine);
/// The same of bytes to other nodes; nothing where ranks are not spread evenly over nodes, in order.
std::optional<double> ideal_bytes_between_nodes(const Engine& engine);

}  // namespace zs::zero

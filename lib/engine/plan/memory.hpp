// SPDX-License-Identifier: Apache-2.0
// The device memory of a rank that results from a plan, buffer by buffer.
#pragma once
#include "plan/plan.hpp"

namespace zs::plan {

struct Profile;

/// Whether operation `at` reduces a gradient whose unit's shard of the parameters has 16 bits, and is not read again
/// before the unit's update: then it gives way to the gradient, and the update rounds the masters into a new one.
bool shard_gives_way(const Plan& plan, std::size_t at, int bytes_per_parameter);

/// Bytes that the engine keeps for a plan from its first step on: parameters, gradients, optimizer state, and all
/// buffers that they pass through. It frees no buffer, and reuses it for requests of the same size: so this is the
/// maximum of each size at one time. For a rank with slices of numel / ranks.
double kept_bytes(const Plan& plan, int bytes_per_parameter);

/// The peak bytes if freed buffers can be reused for any request, as by a GPU's allocator: what the engine keeps, and
/// measured activations. Without memory that no plan names: batches, workspaces of products.
double peak_bytes(const Plan& plan, const Profile& profile);

/// Measured bytes of activations at the peak, with or without checkpointing; negative if the profile has none.
double activation_bytes(const Profile& profile, bool checkpointing);

}  // namespace zs::plan

// SPDX-License-Identifier: Apache-2.0
// The device memory of a rank, as a plan decides it, buffer by buffer.
#pragma once
#include "plan/plan.hpp"

namespace zs::plan {

struct Profile;

/// Bytes that the engine keeps for a plan from its first step on: parameters, gradients, optimizer state, and every
/// buffer that one of them passes through. It gives no buffer back, and lends it again where one of the same size is
/// wanted: this is the most of each size at one time. Of a rank whose slices are numel / ranks.
double kept_bytes(const Plan& plan, int bytes_per_parameter);

/// The most bytes at one time where what is given back is lent to anyone, as a GPU's allocator does it: what the engine
/// keeps, and activations as they were measured. Without what no plan names: batches, what products work in.
double peak_bytes(const Plan& plan, const Profile& profile);

/// Bytes of activations at the peak, as they were measured, with or without checkpointing; less than 0 where the
/// profile does not say.
double activation_bytes(const Profile& profile, bool checkpointing);

}  // namespace zs::plan

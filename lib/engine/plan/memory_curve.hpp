// SPDX-License-Identifier: Apache-2.0
// The device memory of a rank over the operations of a step, by the formulas of state and what was measured of
// activations: where in the step it is short, and what it comes to when something is moved out.
#pragma once
#include <vector>

#include "plan/profile.hpp"

namespace zs::plan {

/// Bytes that a rank has of a unit: optimizer state, and in stage 3 its shard of the parameters.
double optimizer_bytes(const Shape& shape, int unit, int bytes_per_parameter);
double shard_bytes(const Shape& shape, int unit, int bytes_per_parameter);
/// Of the input that a unit keeps for backward: what the unit before it left, as it was measured with activation
/// checkpointing; 0 of the first one, which reads the batch.
double input_bytes(const Profile& profile, int unit);

class MemoryCurve {
 public:
  /// What the formulas do not name (buffers, what products work in) is as much everywhere as it was measured to be at
  /// the peak of a step without passes.
  explicit MemoryCurve(const Profile& profile);
  /// Bytes while each operation runs.
  std::vector<double> over(const Plan& plan) const;
  double peak(const Plan& plan) const;
  /// By how much the peak is lower than it would be without what passes move out.
  double relief(const Plan& plan) const;

 private:
  Profile profile_;
  double rest_ = 0;
};

}  // namespace zs::plan

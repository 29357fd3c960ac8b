// SPDX-License-Identifier: Apache-2.0
// The device memory of a rank over the operations of a step, from the formulas for state and measured activations:
// where in the step it is short, and the effect of moving something out.
#pragma once
#include <vector>

#include "plan/profile.hpp"

namespace zs::plan {

/// Bytes of a unit on a rank: optimizer state, and in stage 3 its shard of the parameters.
double optimizer_bytes(const Shape& shape, int unit, int bytes_per_parameter);
double shard_bytes(const Shape& shape, int unit, int bytes_per_parameter);
/// Bytes of the input that a unit keeps for backward: the output of the unit before it, measured with activation
/// checkpointing; 0 for the first one, which reads the batch.
double input_bytes(const Profile& profile, int unit);

class MemoryCurve {
 public:
  /// Memory outside the formulas (buffers, workspaces of products) is assumed constant, as measured at the peak of a
  /// step without passes.
  explicit MemoryCurve(const Profile& profile);
  /// Bytes while each operation runs.
  std::vector<double> over(const Plan& plan) const;
  double peak(const Plan& plan) const;
  /// The reduction of the peak by passes that move something out.
  double relief(const Plan& plan) const;

 private:
  Profile profile_;
  double rest_ = 0;
};

}  // namespace zs::plan

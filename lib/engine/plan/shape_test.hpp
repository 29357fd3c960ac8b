// SPDX-License-Identifier: Apache-2.0
// What several tests of plans begin with.
#pragma once
#include <algorithm>
#include <cstdint>

#include "plan/plan.hpp"

namespace zs::plan {

/// An embedding, two blocks and a head that is tied to the embedding.
inline Shape shape(int stage, int ranks = 2, int micro_steps = 2, bool checkpointing = false) {
  return {
      {stage, ranks, micro_steps}, {{"embedding", 1000}, {"h.0", 400}, {"h.1", 400}, {"head", 16, 0}}, checkpointing};
}

inline std::int64_t count(const Plan& plan, Kind kind) {
  return std::count_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.kind == kind; });
}

}  // namespace zs::plan

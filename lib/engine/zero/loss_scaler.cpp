// SPDX-License-Identifier: Apache-2.0
#include "zero/loss_scaler.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace zs::zero {

void LossScaler::update(bool finite) {
  if (!on_) return;
  if (!finite) ++state_.skipped;
  if (rules_.fixed > 0) return;
  constexpr double kFactor = 2;
  if (!finite) {
    if (state_.hysteresis > 1) {
      --state_.hysteresis;
    } else {
      if (state_.scale <= rules_.minimum)
        throw Error("gradients are not finite at the smallest loss scale: the training has diverged");
      state_.scale = std::max(state_.scale / kFactor, rules_.minimum);
    }
    state_.last_overflow = state_.iteration;
  } else {
    const std::int64_t stable = state_.iteration - state_.last_overflow - (rules_.grad_scaler ? 0 : 1);
    const bool grows = stable > 0 && stable % rules_.window == 0;
    if (grows) state_.scale *= kFactor;
    if (grows || rules_.consecutive) state_.hysteresis = rules_.hysteresis;
  }
  ++state_.iteration;
}

}  // namespace zs::zero

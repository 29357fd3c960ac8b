// SPDX-License-Identifier: Apache-2.0
#include "zero/loss_scaler.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace zs::zero {
namespace {

constexpr double kFactor = 2, kMinimum = 1;
constexpr std::int64_t kWindow = 1000;
constexpr int kHysteresis = 2;

}  // namespace

void LossScaler::update(bool finite) {
  if (!dynamic_) return;
  if (!finite) {
    ++state_.skipped;
    if (state_.hysteresis > 1) {
      --state_.hysteresis;
    } else {
      if (state_.scale <= kMinimum)
        throw Error("gradients are not finite at the smallest loss scale: the training has diverged");
      state_.scale = std::max(state_.scale / kFactor, kMinimum);
    }
    state_.last_overflow = state_.iteration;
  } else {
    const std::int64_t stable = state_.iteration - state_.last_overflow - 1;
    if (stable > 0 && stable % kWindow == 0) {
      state_.scale *= kFactor;
      state_.hysteresis = kHysteresis;
    }
  }
  ++state_.iteration;
}

}  // namespace zs::zero

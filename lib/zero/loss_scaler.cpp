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
    ++skipped_;
    if (hysteresis_ > 1) {
      --hysteresis_;
    } else {
      if (scale_ <= kMinimum) throw Error("gradients are not finite at the smallest loss scale: the training has diverged");
      scale_ = std::max(scale_ / kFactor, kMinimum);
    }
    last_overflow_ = iteration_;
  } else {
    const std::int64_t stable = iteration_ - last_overflow_ - 1;
    if (stable > 0 && stable % kWindow == 0) {
      scale_ *= kFactor;
      hysteresis_ = kHysteresis;
    }
  }
  ++iteration_;
}

}  // namespace zs::zero

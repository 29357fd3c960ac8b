// SPDX-License-Identifier: Apache-2.0
#include "verify/plain_scale.hpp"

#include <algorithm>
#include <cmath>

namespace zs::verify {

PlainScale::PlainScale(const Rules& rules, bool scales)
    : rules_(rules),
      value_(!scales           ? 1
             : rules.fixed > 0 ? rules.fixed
                               : std::pow(2.0, rules.initial_power)),
      hysteresis_(rules.hysteresis) {}

void PlainScale::next(bool finite) {
  if (!finite) ++skipped_;
  if (rules_.fixed > 0) return;
  if (rules_.grad_scaler) {
    growth_tracker_ = finite ? growth_tracker_ + 1 : 0;
    if (!finite) value_ *= 0.5;
    if (growth_tracker_ == rules_.window) value_ *= 2, growth_tracker_ = 0;
    return;
  }
  if (!finite) {
    if (hysteresis_ > 1) {
      --hysteresis_;
    } else {
      value_ = std::max(value_ / 2, rules_.minimum);
    }
    last_overflow_ = iteration_;
  } else {
    const std::int64_t stable = iteration_ - last_overflow_ - 1;
    const bool grows = stable > 0 && stable % rules_.window == 0;
    if (grows) value_ *= 2;
    if (grows || rules_.consecutive) hysteresis_ = rules_.hysteresis;
  }
  ++iteration_;
}

}  // namespace zs::verify

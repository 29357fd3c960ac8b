// SPDX-License-Identifier: Apache-2.0
#include "zero/step_clock.hpp"

#include <utility>

namespace zs::zero {

using device::Moment;

void StepClock::begin() { begin_ = Moment::now(device_); }

void StepClock::reached() {
  before_ += rest();
  reached_ = Moment::now(device_);
}

double StepClock::end() {
  if (device_.kind == device::Device::Kind::cpu)
    reached();
  else
    end_ = Moment::now(device_);
  return std::exchange(before_, 0) + reached_.since(begin_);
}

double StepClock::rest() {
  const std::optional<Moment> end = std::exchange(end_, std::nullopt);
  return end ? end->since(reached_) : 0;
}

}  // namespace zs::zero

// SPDX-License-Identifier: Apache-2.0
// How long steps take, where the host does not wait for the end of a step.
//
//   host  |begin  launches ...  |waits: norm| launches updates |end |begin  launches ...
//   GPU   |begin  forward, backward    |reached| updates            |end, begin| forward, backward ...
#pragma once
#include <optional>

#include "device/moment.hpp"

namespace zs::zero {

/// On a processor the time of a step is from its begin to its end. On a GPU its end is unknown when the host continues:
/// there the time is from its begin to the host's last wait in it, plus the time that the step before took after its
/// own last wait. So each update is counted once, in the following step; rest() has the update of the last step. The
/// time between two steps is in neither.
class StepClock {
 public:
  explicit StepClock(const device::Device& device) : device_(device) {}

  void begin();
  /// The host has waited for the device.
  void reached();
  /// Seconds of the step. REQUIRES: on a GPU, reached() since begin().
  double end();
  /// Seconds of the last step that no step has counted: on a GPU it waits for them. Later steps do not count them.
  double rest();

 private:
  device::Device device_;
  device::Moment begin_, reached_;
  std::optional<device::Moment> end_;  // of the last step on a GPU, unless its rest is counted
  double before_ = 0;                  // the rest of the step before
};

}  // namespace zs::zero

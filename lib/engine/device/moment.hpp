// SPDX-License-Identifier: Apache-2.0
// A point in a device's work, for measuring how long work takes without waiting for it.
#pragma once
#include <chrono>
#include <memory>

#include "device/view.hpp"

namespace zs::device {

/// On a processor the time of day; on a GPU a mark in LibTorch's stream, which it passes when all earlier work is done.
class Moment {
 public:
  static Moment now(const Device& device);

  /// Seconds from `earlier` to this moment. On a GPU it waits until both are passed. REQUIRES: the same device.
  double since(const Moment& earlier) const;

 private:
  std::chrono::steady_clock::time_point time_;
  std::shared_ptr<void> mark_;  // of a GPU
};

}  // namespace zs::device

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <chrono>

namespace zs {

/// Seconds in which nothing moved, as this process saw them. Where the process stood still itself (Slurm suspended its
/// job, somebody pressed Ctrl-Z, its machine was paused), at most kMost of it counts: the others stood still too.
class Idle {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr double kMost = 5;

  explicit Idle(Time now = std::chrono::steady_clock::now()) : seen_(now) {}
  void restart(Time now = std::chrono::steady_clock::now()) { seen_ = now, seconds_ = 0; }
  /// Since the last restart. REQUIRES: called more often than each kMost seconds.
  double seconds(Time now = std::chrono::steady_clock::now()) {
    seconds_ += std::min(kMost, std::chrono::duration<double>(now - seen_).count());
    seen_ = now;
    return seconds_;
  }

 private:
  Time seen_;
  double seconds_ = 0;
};

}  // namespace zs

// SPDX-License-Identifier: Apache-2.0
// The factor of a loss whose gradients are float16, in the reference. Written only from the contract.
#pragma once
#include <cstdint>

namespace zs::verify {

class PlainScale {
 public:
  /// A constant scale, or 0 for one that doubles after `window` steps without overflow and halves at overflow number
  /// `hysteresis`, a count that restarts when it doubles (consecutive: after every step without one).
  struct Rules {
    double fixed = 0;
    int initial_power = 16;
    std::int64_t window = 1000;
    int hysteresis = 2;
    bool consecutive = false;
    double minimum = 1;
    bool grad_scaler = false;  ///< torch.amp.GradScaler instead: it counts the steps since the last overflow or growth
  };
  /// 1 for a training that does not scale.
  PlainScale(const Rules& rules, bool scales);

  double value() const { return value_; }
  /// After a step: whether its gradient was finite.
  void next(bool finite);
  /// The steps so far that were not.
  std::int64_t skipped() const { return skipped_; }

 private:
  Rules rules_;
  double value_;
  std::int64_t iteration_ = 0, last_overflow_ = -1, skipped_ = 0;
  int hysteresis_;
  std::int64_t growth_tracker_ = 0;  // GradScaler's
};

}  // namespace zs::verify

// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling for float16: the loss is multiplied so that small gradients survive, by as much as goes without
// overflow. Constants and order of events are those of DeepSpeed's DynamicLossScaler (runtime/fp16/loss_scaler.py).
#pragma once
#include <cstdint>

namespace zs::zero {

class LossScaler {
 public:
  /// `dynamic` false keeps the scale at 1.
  explicit LossScaler(bool dynamic) : dynamic_(dynamic), scale_(dynamic ? 65536 : 1) {}

  double scale() const { return scale_; }
  std::int64_t skipped() const { return skipped_; }
  /// After a step: was its gradient finite? Throws zs::Error at an overflow with the scale already at its minimum.
  void update(bool finite);

 private:
  bool dynamic_;
  double scale_;
  std::int64_t iteration_ = 0, last_overflow_ = -1, skipped_ = 0;
  int hysteresis_ = 2;
};

}  // namespace zs::zero

// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling for float16: the loss is multiplied so that small gradients survive, by as much as goes without
// overflow. Constants and order of events are those of DeepSpeed's DynamicLossScaler (runtime/fp16/loss_scaler.py).
#pragma once
#include <cstdint>

namespace zs::zero {

class LossScaler {
 public:
  /// All that a checkpoint keeps of it.
  struct State {
    double scale = 1;
    std::int64_t iteration = 0, last_overflow = -1, skipped = 0;
    int hysteresis = 2;
  };
  /// `dynamic` false keeps the scale at 1.
  explicit LossScaler(bool dynamic) : dynamic_(dynamic) { state_.scale = dynamic ? 65536 : 1; }

  double scale() const { return state_.scale; }
  std::int64_t skipped() const { return state_.skipped; }
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }
  /// After a step: was its gradient finite? Throws zs::Error at an overflow with the scale already at its minimum.
  void update(bool finite);

 private:
  bool dynamic_;
  State state_;
};

}  // namespace zs::zero

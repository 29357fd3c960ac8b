// SPDX-License-Identifier: Apache-2.0
// Loss scaling for float16: multiplies the loss so that small gradients do not underflow, by the largest factor without
// overflow, or by a constant. Constants and the order of events are the same as in DeepSpeed
// (runtime/fp16/loss_scaler.py).
#pragma once
#include <cmath>
#include <cstdint>

namespace zs::zero {

/// The rules of loss scaling.
struct LossScaling {
  double fixed = 0;  ///< constant scale; 0: dynamic
  int initial_power = 16;
  std::int64_t window = 1000;  ///< steps without overflow before the scale doubles
  int hysteresis = 2;          ///< overflow number that halves it
  bool consecutive = false;    ///< the count of overflows restarts after each step without one
  double minimum = 1;
  bool grad_scaler = false;  ///< count as PyTorch's GradScaler does: growth is one step earlier
};
/// PyTorch's GradScaler.
inline LossScaling grad_scaler() { return {.window = 2000, .hysteresis = 1, .minimum = 0, .grad_scaler = true}; }

class LossScaler {
 public:
  /// Its state in a checkpoint.
  struct State {
    double scale = 1;
    std::int64_t iteration = 0, last_overflow = -1, skipped = 0;
    int hysteresis = 2;
  };
  /// `on` false keeps the scale at 1.
  LossScaler(bool on, const LossScaling& rules) : on_(on), rules_(rules) {
    if (on) state_.scale = rules.fixed > 0 ? rules.fixed : std::ldexp(1.0, rules.initial_power);
    state_.hysteresis = rules.hysteresis;
  }

  double scale() const { return state_.scale; }
  std::int64_t skipped() const { return state_.skipped; }
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }
  /// Call it after a step: was its gradient finite? Throws zs::Error at an overflow at the minimal scale.
  void update(bool finite);

 private:
  bool on_;
  LossScaling rules_;
  State state_;
};

}  // namespace zs::zero

// SPDX-License-Identifier: Apache-2.0
// Annotates an operation of the plan for a profiler: its part of the step, its name, unit and micro-step; for a
// collective the bytes and ranks; and the memory in use after it. Costs nothing without a profiler.
#pragma once
#include <ATen/record_function.h>

#include <string>

#include "comm/group.hpp"
#include "plan/plan.hpp"

namespace zs::zero {

/// Lasts as long as the operation runs.
class Annotation {
 public:
  /// `type` is the type of the parameters in forward and backward.
  Annotation(const plan::Plan& plan, const plan::Op& op, const comm::Group& group, device::Type type);
  ~Annotation();

 private:
  at::RecordFunction guard_;
  std::string name_;
  const comm::Group& group_;

  void begin(const plan::Plan& plan, const plan::Op& op, device::Type type);
};

}  // namespace zs::zero

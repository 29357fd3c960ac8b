// SPDX-License-Identifier: Apache-2.0
// PyTorch's automatic mixed precision: while it is on, LibTorch computes matrix products and attention in 16 bits from
// float32 operands, and what would lose by it in float32.
#pragma once
#include "unit/tensor.hpp"

namespace zs::unit {

/// On as long as it lives, on this thread; float32 leaves it off. Casts are not kept for a second use: parameters
/// change their memory under LibTorch's hands.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType type);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool on_;
};

}  // namespace zs::unit

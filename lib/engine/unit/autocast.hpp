// SPDX-License-Identifier: Apache-2.0
// PyTorch's automatic mixed precision: while it is on, LibTorch computes matrix products and attention in 16 bits from
// float32 operands, and operations that need the precision in float32.
#pragma once
#include "unit/tensor.hpp"

namespace zs::unit {

/// On during its lifetime, on this thread; float32 leaves it off. Does not cache casts: parameters change their memory
/// without LibTorch's knowledge.
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

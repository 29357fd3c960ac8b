// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov & Hutter 2019) as one elementwise pass over a shard (device::Operations::adamw).
#pragma once
#include <cstdint>

#include "device/arithmetic.hpp"

namespace zs::zero {

struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  bool correct_bias = true;  ///< false: the moments are used as they are, also in the first steps
};

/// `update` counts from 1. `decay` false leaves weight decay out.
device::AdamWFactors factors(const AdamW& adamw, double learning_rate, std::int64_t update, bool decay);

}  // namespace zs::zero

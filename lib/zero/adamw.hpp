// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov & Hutter 2019) as one elementwise pass over a shard, with the bits of LibTorch's
// torch::optim::AdamW in float32: the same operations in the same order, FMA where its kernels use FMA.
#pragma once
#include <cstdint>

namespace zs::zero {

struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  bool correct_bias = true;  ///< false: the moments are used as they are, also in the first steps
};

/// What one update multiplies with: computed in double, rounded to float once.
struct AdamWFactors {
  float keep, beta1, one_minus_beta1, beta2, one_minus_beta2, root_correction2, epsilon, minus_step;
};
/// `update` counts from 1. `decay` false leaves weight decay out.
AdamWFactors factors(const AdamW& adamw, double learning_rate, std::int64_t update, bool decay);

/// One update of n elements. The gradient used is (gradient_sum * scale) * clip: `scale` divides the tree sum by the
/// number of leaves (exact for powers of two), `clip` is the clipping factor, 1 for none.
void adamw_update(const AdamWFactors& f, float* parameters, float* exp_avg, float* exp_avg_sq,
                  const float* gradient_sum, float scale, float clip, std::int64_t n);

}  // namespace zs::zero

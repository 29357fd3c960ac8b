// SPDX-License-Identifier: Apache-2.0
// Compiled with -ffp-contract=off: which products are fused is part of the result.
#include "zero/adamw.hpp"

#include <cmath>

namespace zs::zero {

AdamWFactors factors(const AdamW& adamw, double learning_rate, std::int64_t update, bool decay) {
  const double correction1 = adamw.correct_bias ? 1 - std::pow(adamw.beta1, static_cast<double>(update)) : 1;
  const double correction2 = adamw.correct_bias ? 1 - std::pow(adamw.beta2, static_cast<double>(update)) : 1;
  return {
      .keep = static_cast<float>(1 - learning_rate * (decay ? adamw.weight_decay : 0)),
      .beta1 = static_cast<float>(adamw.beta1),
      .one_minus_beta1 = static_cast<float>(1 - adamw.beta1),
      .beta2 = static_cast<float>(adamw.beta2),
      .one_minus_beta2 = static_cast<float>(1 - adamw.beta2),
      .root_correction2 = static_cast<float>(std::sqrt(correction2)),
      .epsilon = static_cast<float>(adamw.epsilon),
      .minus_step = static_cast<float>(-(learning_rate / correction1)),
  };
}

// One body, compiled for each instruction set; every one has the same bits, since FMA is spelt out. The names are of
// x86-64 levels, not of processors: GCC offers a processor's clone to that maker's processors alone.
#if defined(__x86_64__)
__attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#endif
void adamw_update(const AdamWFactors& f, float* __restrict parameters, float* __restrict exp_avg,
                  float* __restrict exp_avg_sq, const float* __restrict gradient_sum, float scale, float clip,
                  std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient_sum[i] * scale * clip;
    const float p = parameters[i] * f.keep;
    const float m = __builtin_fmaf(g, f.one_minus_beta1, exp_avg[i] * f.beta1);
    const float v = __builtin_fmaf(f.one_minus_beta2 * g, g, exp_avg_sq[i] * f.beta2);
    const float denominator = __builtin_sqrtf(v) / f.root_correction2 + f.epsilon;
    parameters[i] = p + (f.minus_step * m) / denominator;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
  }
}

}  // namespace zs::zero

// SPDX-License-Identifier: Apache-2.0
#include "zero/adamw.hpp"

#include <cmath>

namespace zs::zero {

device::AdamWFactors factors(const AdamW& adamw, double learning_rate, std::int64_t update, bool decay) {
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

}  // namespace zs::zero

// SPDX-License-Identifier: Apache-2.0
#include "zero/optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace zs::zero {
namespace {

device::AdamWFactors adamw(const optimizer::Settings& s, double learning_rate, std::int64_t update,
                           double weight_decay) {
  const double correction1 = s.correct_bias ? 1 - std::pow(s.beta1, static_cast<double>(update)) : 1;
  const double correction2 = s.correct_bias ? 1 - std::pow(s.beta2, static_cast<double>(update)) : 1;
  return {
      .keep = static_cast<float>(1 - learning_rate * weight_decay),
      .beta1 = static_cast<float>(s.beta1),
      .one_minus_beta1 = static_cast<float>(1 - s.beta1),
      .beta2 = static_cast<float>(s.beta2),
      .one_minus_beta2 = static_cast<float>(1 - s.beta2),
      .root_correction2 = static_cast<float>(std::sqrt(correction2)),
      .epsilon = static_cast<float>(s.epsilon),
      .minus_step = static_cast<float>(-(learning_rate / correction1)),
  };
}

}  // namespace

device::Rule factors(const optimizer::Settings& s, optimizer::Rule rule, double learning_rate, std::int64_t update,
                     bool decay) {
  const double weight_decay = decay ? s.weight_decay : 0;
  const device::SgdFactors sgd{static_cast<float>(weight_decay), static_cast<float>(-learning_rate)};
  switch (rule) {
    case optimizer::Rule::adam:
      return device::AdamFactors{adamw(s, learning_rate, update, 0), static_cast<float>(weight_decay)};
    case optimizer::Rule::sgd:
      return sgd;
    case optimizer::Rule::sgd_momentum:
      return device::MomentumFactors{sgd, static_cast<float>(s.momentum), s.nesterov};
    case optimizer::Rule::lion:
      return device::LionFactors{
          .keep = static_cast<float>(1 - learning_rate * weight_decay),
          .beta1 = static_cast<float>(s.beta1),
          .one_minus_beta1 = static_cast<float>(1 - s.beta1),
          .beta2 = static_cast<float>(s.beta2),
          .one_minus_beta2 = static_cast<float>(1 - s.beta2),
          .minus_rate = static_cast<float>(-learning_rate),
      };
    default: {
      const bool beside_matrices = s.kind == optimizer::Kind::muon;
      return adamw(s, learning_rate * (beside_matrices ? s.adamw_rate_ratio : 1), update, weight_decay);
    }
  }
}

device::Rule matrix_step(const optimizer::Settings& s, double learning_rate, bool decay, std::int64_t rows,
                         std::int64_t columns) {
  const auto height = static_cast<double>(rows), width = static_cast<double>(columns);
  const double ratio =
      s.match_rms ? 0.2 * std::sqrt(std::max(height, width)) : std::sqrt(std::max(1.0, height / width));
  return device::MatrixStepFactors{static_cast<float>(1 - learning_rate * (decay ? s.weight_decay : 0)),
                                   static_cast<float>(-(learning_rate * ratio))};
}

device::DirectionFactors direction(const optimizer::Settings& s) {
  return {static_cast<float>(1 - s.momentum), static_cast<float>(s.momentum), s.nesterov};
}

}  // namespace zs::zero

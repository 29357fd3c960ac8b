// SPDX-License-Identifier: Apache-2.0
// Rotary positions (Su et al. 2021) as config.json describes them, in transformers 5's form (rope_parameters) or the
// one before (rope_theta and rope_scaling).
#pragma once
#include "model/configuration.hpp"
#include "unit/tensor.hpp"

namespace zs::model {

struct Rope {
  std::string type = "default";  ///< default, linear (positions divided by factor), llama3 (long waves alone
                                 ///< are), dynamic (beyond the model's positions, where zs does not train, other waves)
  double theta = 10000, factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  std::int64_t original_positions = 0;  ///< that the model was first trained with
};

/// Throws zs::Error at a type that is not known, and at values that it cannot have.
Rope rope_of(const Configuration& config, std::int64_t positions);
/// As transformers 5 writes it: rope_parameters.
nlohmann::json to_json(const Rope& rope);

/// Cosines and sines of T positions for heads of D numbers, each [T, D/2], float32.
struct Rotation {
  at::Tensor cos_TR, sin_TR;
};
Rotation rotation(const Rope& rope, std::int64_t T, std::int64_t D, at::DeviceType device);

}  // namespace zs::model

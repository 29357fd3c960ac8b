// SPDX-License-Identifier: Apache-2.0
// Rotary positions (Su et al. 2021) from config.json, in the form of transformers 5 (rope_parameters) or the one before
// (rope_theta and rope_scaling).
#pragma once
#include <vector>

#include "model/configuration.hpp"
#include "unit/unit.hpp"

namespace zs::model {

struct Rope {
  std::string type = "default";  ///< default, linear (positions divided by factor), llama3 (long waves alone are),
                                 ///< dynamic (beyond the model's positions, where zs does not train, other waves),
                                 ///< yarn (Peng et al. 2023), longrope (Ding et al. 2024)
  double theta = 10000, factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  double fraction = 1;                  ///< rotated part of a head's numbers: partial_rotary_factor
  std::int64_t original_positions = 0;  ///< of the first training
  double amplitude = 1;                 ///< factor of cosines and sines, for yarn and longrope: attention_factor
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  std::vector<double> short_factor{}, long_factor{};  ///< for longrope: sequences up to original_positions, and longer

  bool operator==(const Rope&) const = default;
};

/// A family's defaults for config.json.
struct RopeDefaults {
  double theta = 10000, fraction = 1;
  std::int64_t positions = 0;           ///< of the model
  std::int64_t original_positions = 0;  ///< from the key next to rope_parameters, which has priority; 0: none
  bool phi = false;  ///< as Phi-3: may rotate a part of a head, and "su" and "yarn" are old names of longrope
};

/// Throws zs::Error at an unknown type, and at invalid values.
Rope rope_of(const Configuration& config, const RopeDefaults& defaults);
/// From one object.
Rope rope_in(const Configuration& part, const RopeDefaults& defaults);
/// In the form of transformers 5: rope_parameters.
nlohmann::json to_json(const Rope& rope);

/// Cosines and sines of T positions for heads of D numbers, each [T, R], float32; R = D/2, or less if only a fraction
/// is rotated.
struct Rotation {
  at::Tensor cos_TR, sin_TR;
  /// Of longrope with T above its original positions: the number of rows in front that are for samples and documents
  /// of at most that length. Each is rotated as it is alone: transformers chooses by the largest position of a forward.
  std::int64_t shorter = 0;

  /// The rotations for the B*T tokens of a batch whose samples contain documents: [B*T, R]; otherwise from its first
  /// position on.
  Rotation of(const unit::Batch& batch) const;
};
Rotation rotation(const Rope& rope, std::int64_t T, std::int64_t D, at::DeviceType device);

}  // namespace zs::model

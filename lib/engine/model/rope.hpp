// SPDX-License-Identifier: Apache-2.0
// Rotary positions (Su et al. 2021) as config.json describes them, in transformers 5's form (rope_parameters) or the
// one before (rope_theta and rope_scaling).
#pragma once
#include <optional>
#include <vector>

#include "model/configuration.hpp"
#include "unit/unit.hpp"

namespace zs::model {

struct Rope {
  std::string type = "default";  ///< default, linear (positions divided by factor), llama3 (long waves alone are),
                                 ///< dynamic (beyond the model's positions, where zs does not train, other waves),
                                 ///< yarn (Peng et al. 2023), longrope (Ding et al. 2024)
  double theta = 10000, factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  double fraction = 1;                  ///< of a head's numbers that is turned: partial_rotary_factor
  std::int64_t original_positions = 0;  ///< that the model was first trained with
  double amplitude = 1;                 ///< of cosines and sines, of yarn and longrope: attention_factor
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  std::vector<double> short_factor{},
      long_factor{};  ///< of longrope, for sequences up to original_positions, and longer

  bool operator==(const Rope&) const = default;
};

/// What a family has where config.json says nothing.
struct RopeDefaults {
  double theta = 10000, fraction = 1;
  std::int64_t positions = 0;           ///< of the model
  std::int64_t original_positions = 0;  ///< of the key beside rope_parameters, which goes before the one in it; 0: none
  bool phi = false;  ///< as Phi-3: part of a head may be turned, and "su" and "yarn" are old names of longrope
};

/// Throws zs::Error at a type that is not known, and at values that it cannot have.
Rope rope_of(const Configuration& config, const RopeDefaults& defaults);
/// As one object says.
Rope rope_in(const Configuration& part, const RopeDefaults& defaults);
/// As transformers 5 writes it: rope_parameters.
nlohmann::json to_json(const Rope& rope);

/// Cosines and sines of T positions for heads of D numbers, each [T, R], float32; R = D/2, or less where a fraction is
/// turned.
struct Rotation {
  at::Tensor cos_TR, sin_TR;

  /// Those of the B*T tokens of a batch whose samples hold documents: [B*T, R]; else as they are.
  Rotation of(const unit::Batch& batch) const;
};
Rotation rotation(const Rope& rope, std::int64_t T, std::int64_t D, at::DeviceType device);

}  // namespace zs::model

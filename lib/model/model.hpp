// SPDX-License-Identifier: Apache-2.0
// The models by name. A model is a list of units; each family is a file pair of its own.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "unit/unit.hpp"

namespace zs::model {

/// What a model is made from; 0 and negative values mean "as the name says".
struct Settings {
  std::string name = "tiny";
  std::int64_t num_layers = 0;
  std::int64_t vocab_size = 0;
  std::int64_t seq_length = 0;  ///< tokens in a sample; at most the model's positions
  double dropout = 0;           ///< embedding, attention and residual dropout
  double init_mean = 0, init_std = 0.02;
  bool init_gaussian = false;        ///< every parameter begins as N(init_mean, init_std), biases and norms too
  bool fused = false;                ///< fused kernels instead of LibTorch's operations
  at::DeviceType device = at::kCPU;  ///< where forward will run
};

struct Model {
  std::string name;
  unit::Units units;
  std::int64_t vocab_size = 0, positions = 0;
  std::int64_t seq_length = 0;  ///< tokens in a sample: as asked for, else the positions, but no more than kUsualLength
  std::int64_t num_layers = 0, width = 0, num_heads = 0;
  double flops_per_token = 0;  ///< forward and backward, matrix products alone
};

/// Tokens in a sample where nothing is asked for and the model has more positions: what a laptop trains in seconds.
inline constexpr std::int64_t kUsualLength = 512;

/// Names of the models that make() knows.
std::vector<std::string> names();

/// How `parameters` begin: as they are, or as init_gaussian says. For the models themselves.
std::vector<unit::Parameter> begun(std::vector<unit::Parameter> parameters, const Settings& settings);

/// Throws zs::Error at an unknown name (naming the nearest) and at settings that do not suit.
Model make(const Settings& settings);

}  // namespace zs::model

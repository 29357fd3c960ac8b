// SPDX-License-Identifier: Apache-2.0
// Compares the weights of a generator with the trainer's: recordings of zs_probe.weights(), or of a training and
// of its generator.
#pragma once
#include <string>

#include "rollout/answer.hpp"

namespace zs::rollout {

/// Whether a recording is of a generator's weights.
bool of_generator(const std::string& folder);

/// Compares each version that the generator holds with the trainer's version of the same number. Says of each tensor
/// that differs how: never delivered, stale, transposed, permuted, another tensor's, without the adapter, scaled.
/// Throws Error, located, for a damaged recording.
Answer compare_weights(const std::string& trainer, const std::string& generator);

}  // namespace zs::rollout

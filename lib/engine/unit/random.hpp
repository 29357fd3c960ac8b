// SPDX-License-Identifier: Apache-2.0
// Random streams by key: numbers depend on (seed, step, leaf, unit, site), never on a rank or a call order.
#pragma once
#include <cstdint>
#include <string_view>

#include "unit/tensor.hpp"

namespace zs::unit {

/// Derives a key from a key and a number or a name, with avalanche (XXH3), so that neighbouring keys are unrelated.
std::uint64_t mix(std::uint64_t key, std::uint64_t value);
std::uint64_t mix(std::uint64_t key, std::string_view name);
/// The key of a leaf in a step.
inline std::uint64_t leaf_key(std::uint64_t seed, std::int64_t step, std::int64_t leaf) {
  return mix(mix(seed, static_cast<std::uint64_t>(step)), static_cast<std::uint64_t>(leaf));
}

/// A CPU generator at the start of the key's stream.
at::Generator generator(std::uint64_t key);

/// Dropout factors in x's shape: 0 with probability p, else 1/(1-p). No gradient.
at::Tensor dropout_mask(const at::Tensor& x, double p, std::uint64_t key);

/// x with each element zeroed with probability p and the others scaled by 1/(1-p); differentiable. p = 0 returns x.
at::Tensor dropout(const at::Tensor& x, double p, std::uint64_t key);

}  // namespace zs::unit

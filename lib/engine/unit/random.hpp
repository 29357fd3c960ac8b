// SPDX-License-Identifier: Apache-2.0
// Random streams by key: the numbers belong to (seed, step, leaf, unit, site), never to a rank or to a call order.
#pragma once
#include <cstdint>
#include <string_view>

#include "unit/tensor.hpp"

namespace zs::unit {

/// A new key from a key and a number or a name; avalanching (XXH3), so that neighbours are unrelated.
std::uint64_t mix(std::uint64_t key, std::uint64_t value);
std::uint64_t mix(std::uint64_t key, std::string_view name);

/// A CPU generator at the start of the key's stream.
at::Generator generator(std::uint64_t key);

/// Factors of dropout in x's shape: 0 with probability p, else 1/(1-p). No gradient.
at::Tensor dropout_mask(const at::Tensor& x, double p, std::uint64_t key);

/// x with each element zeroed with probability p and the rest scaled by 1/(1-p); differentiable. p = 0 gives x itself.
at::Tensor dropout(const at::Tensor& x, double p, std::uint64_t key);

}  // namespace zs::unit

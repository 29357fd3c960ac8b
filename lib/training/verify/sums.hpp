// SPDX-License-Identifier: Apache-2.0
// The sums of the reference: gradients by the canonical tree, and their norm. Written only from the contract.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "unit/unit.hpp"

namespace zs::verify {

/// One tensor per parameter, contiguous float32 on the host, by unit and in the unit's order; gradients of frozen
/// parameters are undefined.
using Tensors = std::vector<std::vector<at::Tensor>>;

/// a + b, element by element.
Tensors sum(const Tensors& a, const Tensors& b);
/// Size of the left subtree of a tree with this number of leaves, at least two: the largest power of two below it.
std::int64_t left_half(std::int64_t leaves);
/// Leaves from `begin` on of a tree over `total`: the sums of the whole subtrees that they are, joined, the last two
/// first.
Tensors joined_sum(std::span<const Tensors> leaves, std::int64_t begin, std::int64_t total);
/// The sum of squares in float64: each unit's parameters, one after another, in 256 tiles (tile i begins at element
/// floor(n * i / 256)); a tile in 256 lanes (by index modulo 256), of which the upper half is added to the lower until
/// one is left; tiles in order, units in order. Units of experts are summed apart, and added to the others' sum.
double sum_of_squares(const Tensors& gradients, const unit::Units& units);

}  // namespace zs::verify

// SPDX-License-Identifier: Apache-2.0
// Quantization for ZeRO++, for the reference: written only from the definition.
#pragma once
#include <vector>

#include "unit/tensor.hpp"

namespace zs::verify {

/// Concatenates a unit's tensors and divides them into 256 tiles (tile i begins at element floor(n * i / 256)), each
/// into blocks of 128: a number becomes the nearest multiple of scale = the block's largest magnitude / most, most =
/// 2^(bits - 1) - 1, ties to even. Returns new tensors of the same shapes and type; computes in float32.
std::vector<at::Tensor> as_integers(const std::vector<at::Tensor>& unit, int bits);

}  // namespace zs::verify

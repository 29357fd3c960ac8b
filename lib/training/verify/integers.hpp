// SPDX-License-Identifier: Apache-2.0
// What numbers become that travel as integers (ZeRO++), for the reference: written from the definition alone.
#pragma once
#include <vector>

#include "unit/tensor.hpp"

namespace zs::verify {

/// A unit's tensors, one after another, in 256 tiles (tile i begins at element floor(n * i / 256)), each in blocks of
/// 128: a number becomes the nearest multiple of scale = the block's largest magnitude / most, most = 2^(bits - 1) - 1,
/// ties to even. New tensors of the same shapes and type, float32 on the way.
std::vector<at::Tensor> as_integers(const std::vector<at::Tensor>& unit, int bits);

}  // namespace zs::verify

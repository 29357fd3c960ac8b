// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 and 4 bits for the reference, written only from their definitions: weights that gathers bring as the 8
// bits of products, and values that travel as integers.
#pragma once
#include <vector>

#include "unit/tensor.hpp"
#include "unit/unit.hpp"

namespace zs::verify {

/// As bitsandbytes rounds state and scales: in blocks of 256, each divided by its largest magnitude, to the nearest of
/// 256 values: 0, 1, and in seven decades the middles of 1, 2, 4 ... 64 parts (without sign: 2 ... 128) of [0.1, 1].
at::Tensor in_8_bits(const at::Tensor& values, bool has_sign);

/// The numbers of a frozen matrix that is held in 4 bits (QLoRA's NF4), from its first ones.
at::Tensor as_nf4(const at::Tensor& matrix, bool nested);

/// Replaces each product's weights x in a unit's tensors on the host by q / s, where q is x s in E4M3, s = 448 / the
/// largest magnitude of all weights that share the scale; if |q| is 448, by that magnitude. In the tensors' type.
void as_float8(const std::vector<unit::Parameter>& parameters, std::vector<at::Tensor>& unit);

// Quantization for ZeRO++, for the reference: written only from the definition.

/// Concatenates a unit's tensors and divides them into 256 tiles (tile i begins at element floor(n * i / 256)), each
/// into blocks of 128: a number becomes the nearest multiple of scale = the block's largest magnitude / most, most =
/// 2^(bits - 1) - 1, ties to even. Returns new tensors of the same shapes and type; computes in float32.
std::vector<at::Tensor> as_integers(const std::vector<at::Tensor>& unit, int bits);

}  // namespace zs::verify

// SPDX-License-Identifier: Apache-2.0
// Vision transformers (Dosovitskiy et al. 2021) that classify images: patches as tokens behind a class token, learned
// positions, pre-norm encoder, GELU by erf. Names and layouts are Hugging Face's (weights are [out, in]).
#pragma once
#include "model/model.hpp"

namespace zs::model {

/// ViT-base, -large and -huge, and tiny-vit (4 layers, 128 wide, 16 patches of 8 x 8 pixels).
const Family& vit();

/// The matrix [to^2, from^2] that takes a square grid of numbers to another one as torch's bicubic interpolation does
/// (A = -0.75, corners not aligned, edges repeated).
at::Tensor bicubic(std::int64_t from, std::int64_t to);

}  // namespace zs::model

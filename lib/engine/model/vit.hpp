// SPDX-License-Identifier: Apache-2.0
// Vision transformers (Dosovitskiy et al. 2021) that classify images: a class token and patches as tokens, learned
// positions, pre-norm encoder, erf GELU. Names and layouts are Hugging Face's (weights are [out, in]).
#pragma once
#include "model/model.hpp"

namespace zs::model {

/// ViT-base, -large and -huge, and tiny-vit (4 layers, 128 wide, 16 patches of 8 x 8 pixels).
const Family& vit();

/// LABEL_0, LABEL_1, ...: transformers' names of labels that have none.
std::vector<std::string> unnamed(std::int64_t count);

/// See model::labels().
std::vector<std::string> labels_of(const Configuration& config);

/// The matrix [to^2, from^2] that resamples a square grid like torch's bicubic interpolation (A = -0.75, corners not
/// aligned, edges repeated).
at::Tensor bicubic(std::int64_t from, std::int64_t to);

}  // namespace zs::model

// SPDX-License-Identifier: Apache-2.0
// Llama 1 to 3 (Touvron et al. 2023, Grattafiori et al. 2024): pre-norm transformer with RMSNorm, rotary positions,
// grouped-query attention, SwiGLU, and a head that may be the embedding. Names and layouts are Hugging Face's (weights
// are [out, in]).
#pragma once
#include "model/model.hpp"

namespace zs::model {

/// Llama 2 and 3, TinyLlama, and tiny-llama (4 layers, 128 wide, bytes as tokens).
const Family& llama();

}  // namespace zs::model

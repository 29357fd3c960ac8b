// SPDX-License-Identifier: Apache-2.0
// GPT-2 (Radford et al. 2019): pre-norm transformer, learned positions, tanh GELU, tied head. Parameter names and
// layouts are Hugging Face's (Conv1D weights are [in, out]).
#pragma once
#include "model/model.hpp"

namespace zs::model {

/// gpt2 (124M) to gpt2-xl (1.5B), and tiny (4 layers, 128 wide, bytes as tokens).
const Family& gpt2();

}  // namespace zs::model

// SPDX-License-Identifier: Apache-2.0
// The files of Megatron-core's torch_dist beside PyTorch's distributed checkpoint: `common.pt` has what all ranks
// share, the iteration, arguments, schedule, and the optimizer's groups with its step; `metadata.json` is written last.
// Format: megatron/core/dist_checkpointing/serialization.py, optimizer/distrib_optimizer.py.
#pragma once
#include <string>

#include "checkpoints/state.hpp"

namespace zs::checkpoints {

/// Whether the folder has these files.
bool is_megatron(const std::string& folder);

/// Adds their content to what add_dcp() read. A damaged file, and groups at different steps, are faults of the state.
void add_megatron(State& into, const std::string& folder);

}  // namespace zs::checkpoints

// SPDX-License-Identifier: Apache-2.0
// The memory that the model states of a ZeRO run need: a lower bound of its peak memory.
#pragma once
#include "metric/table.hpp"

namespace zs::stat {

/// Bytes per rank of parameters, gradients and Adam's states: the run's own figure (ideal_state_bytes), else by the
/// formulas of the ZeRO paper (arXiv:1910.02054, section 5) from model.parameters, zero_stage, world_size and dtype,
/// for fp32 and for 16-bit training with an fp32 master copy. metric::absent_real() if one of them is unknown.
double ideal_state_bytes(const metric::Run& run);

}  // namespace zs::stat

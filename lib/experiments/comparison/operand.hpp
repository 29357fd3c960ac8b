// SPDX-License-Identifier: Apache-2.0
// Which operands zs-verify compares with which.
#pragma once
#include "input/named.hpp"

namespace zs::comparison {

/// Whether it names a run; else it names tensors: a checkpoint, a file of them, a probe.
bool is_run(const input::Named& operand);

/// Throws zs::UsageError where both mean the same run or the same tensors, or one a run and one tensors.
void require_two(const input::Named& a, const input::Named& b);

}  // namespace zs::comparison

// SPDX-License-Identifier: Apache-2.0
// Which kinds of operands zs-verify compares with each other.
#pragma once
#include "input/named.hpp"

namespace zs::comparison {

/// Whether it is a run; else it is tensors: a checkpoint, a file of them, a probe.
bool is_run(const input::Named& operand);

/// Throws zs::UsageError if both are the same run or tensors, or one is a run and the other is not.
void require_two(const input::Named& a, const input::Named& b);

}  // namespace zs::comparison

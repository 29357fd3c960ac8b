// SPDX-License-Identifier: Apache-2.0
// Which operands zs-verify compares with which.
#pragma once
#include "input/named.hpp"

namespace zs::comparison {

/// Whether it names a run; else it names tensors: a checkpoint, a file of them, a probe.
bool is_run(const input::Named& operand);

/// Whether the two hold what their files, one beside the other, do not tell: a checkpoint of another program or layout,
/// or an optimizer's state in zs's own form of safetensors.
bool of_other_layouts(const input::Named& a, const input::Named& b);

/// Throws zs::UsageError where both mean the same run or the same tensors, or one a run and one tensors.
void require_two(const input::Named& a, const input::Named& b);

}  // namespace zs::comparison

// SPDX-License-Identifier: Apache-2.0
// Compares two recorded runs in all values that the training determines; verdicts: compare/verdict.hpp.
#pragma once
#include <string>
#include <vector>

#include "compare/measure.hpp"
#include "comparison/answer.hpp"
#include "comparison/recorded.hpp"

namespace zs::comparison {

/// Compares records, digests and the checkpoints of both folders. With `columns`, only these columns of the records.
/// Values written with fewer digits count as equal if their digits agree; the verdict says so. The answer has the first
/// record that differs, the first tensor that differs and every reason to fail.
Answer compare_runs(const Recorded& a, const Recorded& b, const compare::Tolerance& tolerance,
                    const std::vector<std::string>& columns = {});

}  // namespace zs::comparison

// SPDX-License-Identifier: Apache-2.0
// Two recorded runs, compared in everything that training decides, whose words compare/verdict.hpp defines.
#pragma once
#include <string>
#include <vector>

#include "compare/measure.hpp"
#include "comparison/answer.hpp"
#include "comparison/recorded.hpp"

namespace zs::comparison {

/// Compares records, digests and the checkpoints of both folders. With `columns`, only these columns of the records.
/// Values that were written with fewer digits count as equal where their digits do not tell them apart; the verdict
/// says so. The first record that differs, the first tensor that does and every reason to fail are told, whatever comes
/// first.
Answer compare_runs(const Recorded& a, const Recorded& b, const compare::Tolerance& tolerance,
                    const std::vector<std::string>& columns = {});

}  // namespace zs::comparison

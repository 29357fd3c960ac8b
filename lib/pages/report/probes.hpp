// SPDX-License-Identifier: Apache-2.0
// The report on two probes: a sentence about where two trainings differ, and a map of the distances; and on one: what
// holds within it.
#pragma once
#include <string>

#include "compare/verdict.hpp"
#include "report/document.hpp"

namespace zs::report {

/// All lines of an answer.
Grid details(const compare::AnswerLines& lines);

/// The verdict is good if no difference
/// is beyond rounding, bad if one is or if a record proves nothing, open if one
/// lacks something that the other has. Throws Error if a record is damaged.
Document probes(const std::string& a, const std::string& b);

/// One probe, by the relations that hold within it, with the log-probabilities of its generator if it `generates`.
/// Throws Error if it is damaged.
Document probe(const std::string& folder, bool generates);

}  // namespace zs::report

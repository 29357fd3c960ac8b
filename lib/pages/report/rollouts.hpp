// SPDX-License-Identifier: Apache-2.0
// The report on log-probabilities of a generator and a trainer: how far apart they are at each step and position, and
// which weights the generator had.
#pragma once
#include <string>

#include "report/document.hpp"
#include "rollout/answer.hpp"

namespace zs::report {

/// Of a dump of both sides, or with `b` of two of one side each; `b` may be "". Throws Error if one is damaged.
Document rollouts(const std::string& a, const std::string& b);

/// The figures of an answer, as a section without words.
Section rollout_section(const rollout::Answer& answer);

}  // namespace zs::report

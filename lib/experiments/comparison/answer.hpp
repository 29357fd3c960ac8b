// SPDX-License-Identifier: Apache-2.0
// The result of zs-verify for two recorded things: a verdict and its details.
#pragma once
#include <string>
#include <vector>

#include "compare/verdict.hpp"
#include "metric/table.hpp"
#include "state/diff.hpp"

namespace zs::comparison {

struct Answer {
  compare::Settled verdict{};
  compare::AnswerLines lines;  ///< "verdict" and its details, in order
  metric::Table columns{};     ///< for two runs, a row per column: column, rows, differing, abs, rel, ulp, known_to
};

/// Compares two recordings, of which steps up to `after` are skipped. `floor`: one that shows the effect of rounding,
/// or "". Throws zs::Error, located.
Answer compare_recordings(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                          std::int64_t after = 0, const std::string& floor = "");

/// Compares two checkpoints or files of tensors of any programs, as zs-checkpoint reads them: gradients, weights,
/// masters, moments, steps, settings, schedules, scalers and random states, with names matched by `names`. Throws
/// zs::Error, located, if one cannot be read at all; damage is FAILED.
Answer compare_states(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                      const state::Names& names = {}, state::Extent extent = state::Extent::common);

/// Adds the verdict of two checkpoints under their name, and if they are not equal its details: "checkpoint_2 what".
void add(Answer& into, const std::string& checkpoint, const Answer& found);

/// "; also: " and so on: joins reasons into a text of limited length.
std::string reasons_text(const std::vector<std::string>& reasons);

}  // namespace zs::comparison

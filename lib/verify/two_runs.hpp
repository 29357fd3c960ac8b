// SPDX-License-Identifier: Apache-2.0
// Two recorded runs, compared in everything that both hold and that training decides: not times, not memory.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "metric/table.hpp"
#include "verify/measure.hpp"
#include "verify/recorded.hpp"

namespace zs::verify {

struct RunsVerdict {
  enum class Kind { exact, printed, within, different, failed };
  Kind kind = Kind::failed;
  std::vector<std::pair<std::string, std::string>> lines;  ///< "verdict", and what belongs to it, in order
  metric::Table columns;  ///< a row a column compared: column, steps, abs, rel, ulp, known_to
};

/// Values that were written with fewer digits count as equal where their digits do not tell them apart; the verdict
/// says so. Not-a-number, a step that only one run has, no step in common, a loss that does not move and faults in a
/// log fail with a name.
RunsVerdict compare_runs(const Recorded& a, const Recorded& b, const Tolerance& tolerance);

}  // namespace zs::verify

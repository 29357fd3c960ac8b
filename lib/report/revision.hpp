// SPDX-License-Identifier: Apache-2.0
// The report of two revisions, or more, of one training: the same numbers, and as fast?
#pragma once
#include <string>

#include "report/document.hpp"
#include "report/findings.hpp"

namespace zs::report {

struct Gate {
  std::string baseline{};      ///< the condition to compare with; "" is the first
  double max_slowdown = 0.03;  ///< a step may take longer by this share, and memory grow by it
};

/// The verdict is good where every other condition has the same numerics as the baseline (the same bits, or losses
/// within what repeated runs differ by) and is shown not to be slower or larger than the gate allows; bad where it is
/// shown that one is not; else open. Throws UsageError at an unknown baseline, Error with fewer than two conditions.
Document revision(const metric::Store& store, const Findings& found, const std::string& source,
                  const std::string& folder, const Gate& gate);

}  // namespace zs::report

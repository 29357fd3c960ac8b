// SPDX-License-Identifier: Apache-2.0
// What runs of two revisions show: whether they compute the same, and the ratios of time and memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/document.hpp"
#include "report/findings.hpp"
#include "summary/ratio.hpp"

namespace zs::report {

struct Gate {
  std::string baseline{};      ///< the condition to compare with; "" is the first
  double max_slowdown = 0.03;  ///< a step may take longer by this share, and memory grow by it
};

/// What is known of one question about one revision.
struct Answer {
  Verdict verdict = Verdict::open;
  Text text;
};

/// "identical bits", "identical losses" (no digest says more), "within the envelope" (of what repeated runs differ by),
/// "different", or "unknown".
struct Numerics : Answer {
  std::string found = "unknown";
  std::optional<std::int64_t> from_step{};  ///< where it first is different, or outside of the envelope
  std::optional<double> loss_difference{};  ///< the largest; nan where a loss is
  std::optional<double> envelope{};         ///< what repeated runs of one revision differ by at most
};

/// One revision beside the baseline.
struct Comparison {
  const Condition* other = nullptr;
  Numerics numerics;
  Answer time, memory;
  summary::Ratios ratios;
  bool compared = true;  ///< false where one of the two failed
};

struct Comparisons {
  const Condition* baseline = nullptr;
  std::vector<Comparison> others;
  Verdict verdict = Verdict::open;
  std::string label;  ///< "Same or better", "Worse or different", "Inconclusive"
  Text text;          ///< the verdict in a paragraph
};

/// The verdict is good where every other condition has the same numerics as the baseline (the same bits, or losses
/// within what repeated runs differ by) and is shown not to be slower or larger than the gate allows; bad where it is
/// shown that one is not, or where one failed; open where the data do not show it, or the baseline failed. Runs are
/// pairs where their attribute "run" says so: the kth of the one ran beside the kth of the other.
/// Throws UsageError at an unknown baseline, Error with fewer than two conditions. `found` must outlive the result.
Comparisons compare(const metric::Store& store, const Findings& found, const std::string& source, const Gate& gate);

}  // namespace zs::report

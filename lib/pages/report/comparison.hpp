// SPDX-License-Identifier: Apache-2.0
// Compares runs of two revisions: whether they compute the same, and the ratios of time and memory.
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
  double max_slowdown = 0.03;  ///< a step may take longer, and memory grow, by this share
};

/// The answer to one question about one revision.
struct Answer {
  Verdict verdict = Verdict::open;
  Text text;
};

/// "identical bits", "identical losses" (without digests), "within the envelope" (no more apart than chance makes of
/// repeated runs), "different", or "unknown".
struct Numerics : Answer {
  std::string found = "unknown";
  std::optional<std::int64_t> from_step{};  ///< the first step that differs, or is outside the envelope
  std::optional<double> loss_difference{};  ///< the largest; nan if a loss is
  std::optional<double> envelope{};         ///< the largest difference between repeated runs of one revision
};

/// One revision compared with the baseline.
struct Comparison {
  const Condition* other = nullptr;
  Numerics numerics;
  Answer time, memory;
  summary::Ratios ratios;
  bool compared = true;  ///< false if one of the two failed
};

struct Comparisons {
  const Condition* baseline = nullptr;
  std::vector<Comparison> others;
  Verdict verdict = Verdict::open;
  std::string label;  ///< "Same or better", "Worse or different", "Inconclusive"
  Text text;          ///< the verdict in a paragraph
  struct {
    std::string verdict, sentence;
  } probe;  ///< of the tensors recorded with both; empty if none were
};

/// The verdict is good if every other condition has the same numerics as the baseline (the same bits, or losses within
/// the differences of repeated runs) and is shown not to be slower or larger than the gate allows; bad if one is shown
/// to violate this, or failed; open if the data do not decide it, or the baseline failed. Runs are paired if their
/// attribute "run" says so: the kth runs of both ran next to each other. Throws UsageError at an unknown baseline,
/// Error with fewer than two conditions. `found` must outlive the result.
Comparisons compare(const metric::Store& store, const Findings& found, const std::string& source, const Gate& gate);

}  // namespace zs::report

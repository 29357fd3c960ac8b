// SPDX-License-Identifier: Apache-2.0
// Recorded runs, and the comparison of two in all values that the training determines; verdicts: compare/verdict.hpp.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compare/measure.hpp"
#include "compare/precision.hpp"
#include "comparison/answer.hpp"
#include "input/named.hpp"
#include "metric/table.hpp"

namespace zs::comparison {

/// A recorded run: the content of its folder, metric file or log, and its precision.
struct Recorded {
  std::string path;    ///< the name in messages
  std::string folder;  ///< the run's folder, if it has one
  metric::Run run;
  std::map<std::string, compare::Precision> precision;  ///< of the numeric columns
  std::vector<std::string> faults;                      ///< unreadable parts of a log

  /// Checkpoints in the folder, including damaged ones: "checkpoint_100", "final_checkpoint", by step.
  std::vector<std::string> checkpoints() const;
};

/// Reads one run from an input of any kind. Throws zs::Error if it holds none, or several.
Recorded read_recorded(const input::Named& named);

/// Compares records, digests and the checkpoints of both folders. With `columns`, only these columns of the records.
/// Values written with fewer digits count as equal if their digits agree; the verdict says so. The answer has the first
/// record that differs, the first tensor that differs and every reason to fail.
Answer compare_runs(const Recorded& a, const Recorded& b, const compare::Tolerance& tolerance,
                    const std::vector<std::string>& columns = {});

}  // namespace zs::comparison

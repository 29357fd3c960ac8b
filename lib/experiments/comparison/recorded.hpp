// SPDX-License-Identifier: Apache-2.0
// A recorded run: the content of its folder, metric file or log, and its precision.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compare/precision.hpp"
#include "input/named.hpp"
#include "metric/table.hpp"

namespace zs::comparison {

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

}  // namespace zs::comparison

// SPDX-License-Identifier: Apache-2.0
// A run that was recorded: what its folder, metric file or log still tells, and how exactly.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compare/precision.hpp"
#include "input/named.hpp"
#include "metric/table.hpp"

namespace zs::comparison {

struct Recorded {
  std::string path;    ///< as messages call it
  std::string folder;  ///< the run's folder, if it has one
  metric::Run run;
  std::map<std::string, compare::Precision> precision;  ///< of the columns of numbers
  std::vector<std::string> faults;                      ///< what could not be read in a log

  /// Checkpoints below the folder, damaged ones too: "checkpoint_100", "final_checkpoint", by step.
  std::vector<std::string> checkpoints() const;
};

/// Reads what was named, whatever of one run. Throws zs::Error where it holds none, or several.
Recorded read_recorded(const input::Named& named);

}  // namespace zs::comparison

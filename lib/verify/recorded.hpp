// SPDX-License-Identifier: Apache-2.0
// A run that was recorded: what its folder, metric file or log still tells, and how exactly.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "metric/table.hpp"

namespace zs::verify {

/// How exactly the values of a column are known.
struct Precision {
  bool every_bit = true;
  int decimals = 0;  ///< else: so many were written, and a value is known to half a unit of the last

  double uncertainty() const;
  std::string text() const;  ///< "every bit", "6 decimals (5e-07)"
};

/// Of numbers as they are spelt. Fifteen significant digits anywhere mean that whoever wrote them kept them all.
Precision precision_of(const std::vector<std::string>& cells);

struct Recorded {
  std::string path;    ///< as given
  std::string folder;  ///< the run's folder, if it has one
  metric::Run run;
  std::map<std::string, Precision> precision;  ///< of the columns of numbers
  std::vector<std::string> faults;             ///< what could not be read in a log

  /// Weights below the folder that this can read: "checkpoint_100", "final_checkpoint", by step.
  std::vector<std::string> checkpoints() const;
};

/// Reads a run folder (metrics.h5, else run.log), a metric file of one run, or a log. Throws zs::Error otherwise.
Recorded read_recorded(const std::string& path);

}  // namespace zs::verify

// SPDX-License-Identifier: Apache-2.0
// Trainings that are planned: registered with their whole configuration before anything runs.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "registry/record.hpp"

namespace zs::experiment {

struct Planned {
  std::string name;                ///< as the plan calls it
  std::string folder;              ///< of the run, absolute
  std::string command;             ///< the call of zs-train, as a shell reads it
  std::vector<std::string> words;  ///< its words after "zs-train": the line's, secrets withheld

  /// {"command": ..., "arguments": [...]}
  std::string json() const;
};

/// Registers a run for each line of `lines`, a JSON list: a name, then the words of zs-train's command line. `fields`
/// are recorded with each. All lines are checked before the first run is made. Throws Error or UsageError, which name
/// the line's training, at what zs-train would not take; then no run is left.
std::vector<Planned> plan(std::string_view lines, const registry::Fields& fields);

}  // namespace zs::experiment

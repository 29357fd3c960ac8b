// SPDX-License-Identifier: Apache-2.0
// A complete recording must have ends, lines and the steps of its stride, and the same from each rank.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "probefile/run.hpp"

namespace zs::probefile {

/// Counts and marks that the reader found in a rank's file.
struct RankFile {
  std::string path;
  std::int64_t line = 0;
  bool torn = false;                           ///< the last line is cut
  std::map<std::int64_t, std::int64_t> lines;  ///< the line of each step
};

/// Adds the faults of the recording, and what it does not show. Skips steps up to `after`.
void check(Run& run, const std::vector<RankFile>& files, std::int64_t after);

/// Whether a part of a recording has the step because of its stride.
bool due(const Part& part, std::int64_t step);

}  // namespace zs::probefile

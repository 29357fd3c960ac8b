// SPDX-License-Identifier: Apache-2.0
// Writes the runs of a registry as a page for a browser (report/runs_page.hpp).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "experiment/state.hpp"
#include "registry/listing.hpp"
#include "report/runs_page.hpp"

namespace zs::experiment {

struct PageFile {
  std::string path;  ///< ends in .html
  int every = 0;     ///< seconds between updates; 0 for none
};

/// Writes the runs of the registry that match `question`, with their current states, or, if there are `operands`, the
/// runs of these logs, records and folders: once, or until a signal ends it. `tool`: the program with its version.
/// Throws UsageError at a path of another kind.
void write_page(const std::string& registry, const std::vector<std::string>& operands,
                const registry::Question& question, const PageFile& file, const std::string& tool,
                const FaultSink& faults);

// A cache of runs' metrics, for repeated views of many runs: an unchanged file is not read again.

class Seen {
 public:
  /// experiment::progress() of the run in `folder`.
  const Progress& progress(const std::string& folder);
  /// Its curve with at most `most` points; null if it has none, or its metrics cannot be read.
  const report::Curve* curve(const std::string& folder, std::size_t most);
  /// Reports the runs whose metrics could not be read, each once.
  void tell(const FaultSink& faults);

  std::int64_t reads() const { return reads_; }

 private:
  struct Entry {
    std::int64_t bytes = -1, changed = 0;  // of the file; ns
    bool settled = false;                  // a later change has another time
    std::size_t most = 0;                  // requested number of points
    bool told = false;
    Progress progress{};
    std::optional<report::Curve> curve{};
  };
  std::map<std::string, Entry> runs_;
  std::size_t most_ = 512;  // number of points for the next request
  std::int64_t reads_ = 0;

  Entry& entry(const std::string& folder, bool anew = false);
};

}  // namespace zs::experiment

// SPDX-License-Identifier: Apache-2.0
// What the metrics of runs said when they were read, for who looks at many runs again and again: a file that is as it
// was is not read a second time.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "experiment/state.hpp"
#include "report/runs_page.hpp"

namespace zs::experiment {

class Seen {
 public:
  /// Of the run in `folder`, as experiment::progress() says it.
  const Progress& progress(const std::string& folder);
  /// Its curve of at most so many points; null where it has none, or its metrics cannot be read.
  const report::Curve* curve(const std::string& folder, std::size_t most);
  /// Tells the runs whose metrics could not be read, each once.
  void tell(const FaultSink& faults);

  std::int64_t reads() const { return reads_; }

 private:
  struct Entry {
    std::int64_t bytes = -1, changed = 0;  // of the file; ns
    std::size_t most = 0;                  // points that were asked for
    bool told = false;
    Progress progress{};
    std::optional<report::Curve> curve{};
  };
  std::map<std::string, Entry> runs_;
  std::size_t most_ = 512;  // points that are asked for next
  std::int64_t reads_ = 0;

  Entry& entry(const std::string& folder, bool anew = false);
};

}  // namespace zs::experiment

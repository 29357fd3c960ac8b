// SPDX-License-Identifier: Apache-2.0
// Writes the runs of a registry as a page for a browser (report/runs_page.hpp).
#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "registry/listing.hpp"

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

}  // namespace zs::experiment

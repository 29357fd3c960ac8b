// SPDX-License-Identifier: Apache-2.0
// The runs of a registry as a page for a browser (report/runs_page.hpp).
#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "registry/listing.hpp"

namespace zs::experiment {

struct PageFile {
  std::string path;  ///< ends in .html
  int every = 0;     ///< seconds after which it is written anew; 0 for never
};

/// Writes the runs of the registry that `question` asks for, each in the state that it is in now, or, where there are
/// `operands`, the runs of these logs, records and folders: once, or until a signal ends it. `tool`: what writes it,
/// with its version. Throws UsageError at a path of another kind.
void write_page(const std::string& registry, const std::vector<std::string>& operands,
                const registry::Question& question, const PageFile& file, const std::string& tool,
                const FaultSink& faults);

}  // namespace zs::experiment

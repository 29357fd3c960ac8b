// SPDX-License-Identifier: Apache-2.0
// All runs of a registry as one HTML page, which loads nothing: sorted, filtered and grouped in the browser, with the
// curves of chosen runs and what can be said of their equality.
#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "figure/theme.hpp"
#include "registry/runs.hpp"

namespace zs::report {

struct RunsPage {
  std::string title;
  std::string tool;                  ///< what writes it, with its version
  std::string registry;              ///< folder of the runs, whose metrics.h5 are read
  std::string folder;                ///< where the page will stand: links to reports and logs are relative to it
  std::vector<std::size_t> rows;     ///< of the table of runs, in this order at first
  std::vector<std::string> columns;  ///< shown at first; the others can be chosen
  int every = 0;                     ///< seconds after which a browser reads the page again; 0 for never
};

/// The page. Of 10,000 runs it has about 8 MB: each run's losses are thinned to as many points as fit, at steps that
/// are multiples of a power of two, so that any two runs share points; each point has a hash of all losses up to it.
/// A run whose metrics cannot be read has no curve, and is reported to `faults`.
std::string to_html(const registry::Runs& runs, const RunsPage& page, const figure::Theme& theme,
                    const FaultSink& faults);

}  // namespace zs::report

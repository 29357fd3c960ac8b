// SPDX-License-Identifier: Apache-2.0
// What people have, as a summary: summaries and records, logs, runs by id or name, folders of any of these.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "metric/table.hpp"

namespace zs::summary {

/// Who is told what while inputs are read.
struct Listener {
  std::function<void(std::size_t done, std::size_t all, const std::string& name)> progress{};  ///< before each input
  FaultSink fault{};                                                                           ///< defects of logs
  std::function<void(const std::string&)> warn{};
};

/// Reads `inputs`: metric files and "-", training logs, a run's folder, its id or name in `registry`, and folders: a
/// results folder, a registry, or one with logs. One summary alone is taken as it is; anything else is summarised as
/// zs-aggregate does by default. Runs are called by their run_name where that tells them apart. Throws Error where an
/// input is none of these, holds nothing, or two runs have one name. Runs that all have the
/// attribute `by` are grouped by it.
metric::Store read(const std::vector<std::string>& inputs, const std::string& registry, const Listener& listener,
                   const std::string& by = "");

}  // namespace zs::summary

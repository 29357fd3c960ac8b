// SPDX-License-Identifier: Apache-2.0
// Running again what failed or is missing, by the script that planned it.
#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "registry/listing.hpp"
#include "registry/runs.hpp"

namespace zs::job {

/// add_states() for the runs that the question's filters let through, as far as they can be told without states.
/// Afterwards filters may ask for state, steps, slurm_job, nodes and basis too: the rows that pass all.
/// With an empty `show` and no table wanted, `question` shows what says it.
std::vector<std::size_t> find_states(const std::string& registry, registry::Question& question, registry::Runs& runs);
std::vector<std::size_t> find_states(const std::string& registry, registry::Question&& question, registry::Runs& runs);

/// What one call of a script runs again.
struct Rerun {
  std::string script, directory;              ///< the script, and the folder to call it in
  std::string experiment;                     ///< its results folder; "" for a single training
  std::vector<std::string> conditions, runs;  ///< of the experiment; the folders of the runs
};

/// Of `rows`, which have states, those that have to be run again. A run that no script has planned is reported to
/// `faults`, and with `strict` every run that has not to be run again too.
std::vector<Rerun> to_rerun(const std::string& registry, const registry::Runs& runs,
                            const std::vector<std::size_t>& rows, bool strict, const FaultSink& faults);

/// Calls the script, which submits again or, `local` or where the experiment never was submitted, trains here; its exit
/// status.
int rerun(const Rerun& job, bool local);

}  // namespace zs::job

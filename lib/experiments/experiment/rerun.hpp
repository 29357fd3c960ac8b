// SPDX-License-Identifier: Apache-2.0
// Running again what failed or is missing, by the script that planned it.
#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "experiment/state.hpp"
#include "registry/listing.hpp"
#include "registry/runs.hpp"

namespace zs::experiment {

/// add_states() for the runs that the question's filters let through, as far as they can be told without states.
/// Afterwards filters may ask for state, steps, slurm_job, nodes and basis too: the rows that pass all.
/// With an empty `show` and no table wanted, `question` shows what says it.
std::vector<std::size_t> find_states(const std::string& registry, registry::Question& question, registry::Runs& runs,
                                     const ProgressOf& progress_of_run = progress);
/// Whether the question shows, sorts by or filters by one of those columns, and the registry has none of that name.
bool asks_for_states(const registry::Question& question, const registry::Runs& runs);
std::vector<std::size_t> find_states(const std::string& registry, registry::Question&& question, registry::Runs& runs);

/// What one call of a script runs again.
struct Rerun {
  std::string script, directory;              ///< the script, and the folder to call it in
  std::string experiment;                     ///< its results folder; "" for a single training
  std::vector<std::string> conditions, runs;  ///< of the experiment; the folders of the runs
  bool any_owner = false;                     ///< the script need not look whose the files are

  /// The words of the call; the script trains here if `local`, else submits again what was submitted.
  std::vector<std::string> command(bool local) const;
};

/// Which runs to_rerun() takes.
struct Choice {
  bool strict = false;     ///< every run that has not to be run again is a fault
  bool any_owner = false;  ///< also of runs that others may have written into
};

/// Of `rows`, which have states, those that have to be run again. A record may be anybody's: it names one of the
/// scripts of this installation, never a path, and the run, its record and its results folder must be the caller's.
/// What is not run again, and why, is reported to `faults`. Throws Error where this installation has no scripts.
std::vector<Rerun> to_rerun(const std::string& registry, const registry::Runs& runs,
                            const std::vector<std::size_t>& rows, const Choice& choice, const FaultSink& faults);

/// Throws Error where the results folder, or the folder of a run, or what in it decides how trainings are run, belongs
/// to another or is a link: what it says would run as the caller.
void require_own(const std::string& folder);

/// The command by which a person goes on with the experiment in `folder`.
std::string rerun_command(const std::string& folder);

/// Calls the script; its exit status.
int rerun(const Rerun& job, const std::vector<std::string>& command);

}  // namespace zs::experiment

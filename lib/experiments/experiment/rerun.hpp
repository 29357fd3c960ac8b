// SPDX-License-Identifier: Apache-2.0
// Runs failed or missing trainings again, with the script that planned them.
#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "experiment/state.hpp"
#include "registry/listing.hpp"
#include "registry/runs.hpp"

namespace zs::experiment {

/// add_states() for the runs that match the question's filters, as far as these do not need states. Then applies
/// filters on state, steps, slurm_job, nodes and basis too, and returns the matching rows. With an empty `show` and no
/// table wanted, selects the relevant columns in `question`.
std::vector<std::size_t> find_states(const std::string& registry, registry::Question& question, registry::Runs& runs,
                                     const ProgressOf& progress_of_run = progress);
/// Whether the question shows, sorts by or filters by one of those columns, and the registry has none of that name.
bool asks_for_states(const registry::Question& question, const registry::Runs& runs);
std::vector<std::size_t> find_states(const std::string& registry, registry::Question&& question, registry::Runs& runs);

/// The runs that one call of a script runs again.
struct Rerun {
  std::string script, directory;              ///< the script, and its working directory
  std::string experiment;                     ///< the results folder; "" for a single training
  std::vector<std::string> conditions, runs;  ///< of the experiment; the folders of the runs
  bool any_owner = false;                     ///< the script need not check the owner of the files

  /// The words of the call; with `local` the script trains here, else it submits to Slurm again.
  std::vector<std::string> command(bool local) const;
};

/// The selection of to_rerun().
struct Choice {
  bool strict = false;     ///< every run that need not be run again is a fault
  bool any_owner = false;  ///< include runs that other users may have written into
};

/// The runs among `rows`, which have states, that must be run again. A record may be written by anyone: so it names one
/// of this installation's scripts, never a path, and the run, its record and its results folder must belong to the
/// caller. Runs that are left out are reported to `faults` with the reason. Throws Error without scripts.
std::vector<Rerun> to_rerun(const std::string& registry, const registry::Runs& runs,
                            const std::vector<std::size_t>& rows, const Choice& choice, const FaultSink& faults);

/// Throws Error if the results folder, the folder of a run, or a file in it that determines how trainings run is a link
/// or belongs to another user: its commands would run under the caller's account.
void require_own(const std::string& folder);

/// The command with which a person continues the experiment in `folder`.
std::string rerun_command(const std::string& folder);

/// Calls the script; returns its exit status.
int rerun(const Rerun& job, const std::vector<std::string>& command);

}  // namespace zs::experiment

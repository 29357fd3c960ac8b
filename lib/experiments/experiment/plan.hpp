// SPDX-License-Identifier: Apache-2.0
// Plans trainings: registers them with their whole configuration before anything runs.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"

namespace zs::experiment {

/// Parses trainings from lines of JSON lists: ["NAME", "WORD", ...], a name and the words of zs-train's command line.
/// [["NAME", "CONDITION"], "WORD", ...] is a repetition of that condition. Throws UsageError at any other line.
std::vector<Cell> read_cells(std::string_view lines);
/// The line for a training.
std::string cell_line(const std::string& name, const std::vector<std::string>& words,
                      const std::string& repetition_of = "");

/// The run in a folder, REGISTRY/ID.
registry::Run run_in(const std::string& folder);

/// Whether the cell, or the run, is another program's training, run by zs-record: "run_command" is its command line.
bool is_foreign(const registry::Fields& fields);

/// Registers a run for each training, with `fields` in each record, and adds to each cell its command and its run's
/// folder. Checks all command lines before it creates the first run. Throws Error or UsageError, which name the
/// training, at anything that zs-train would refuse; then no run remains. With "run_command" among `fields`, the
/// trainings are another program's, and that is the template of their command (foreign.hpp).
std::vector<Cell> plan(std::vector<Cell> cells, const registry::Fields& fields);

/// Whether a run's record keeps the field of a plan; the experiment keeps the others.
bool of_runs(std::string_view field);

/// Plans the trainings in a results folder, which the field "experiment" names: writes metadata.json, with the `fields`
/// that are not in the runs, and frozen.sha256. Without trainings, as at the start of a comparison of revisions, only
/// metadata.json.
Experiment plan_experiment(std::vector<Cell> cells, const registry::Fields& fields);

/// Plans trainings again, for a script that continues an experiment: its cells in `folder` that failed, are missing or
/// were preempted, with `unfinished` also those that other processes may be running; only `names` if given. Adds
/// `fields` (the process that will train them) to the records. Also checks the plan of a single run in `folder`.
/// Returns the cells. Throws Error if frozen files have changed.
std::vector<Cell> plan_again(const std::string& folder, bool unfinished, const std::vector<std::string>* names,
                             const registry::Fields& fields);

/// The files of a cell's training that must not change before it starts.
std::vector<std::string> files_of(const Cell& cell);
/// Writes the SHA-256 of zs-train (of zs-record for another program's training) and of these files to `path`, in
/// sha256sum's format.
void freeze(const std::string& path, std::vector<std::string> files, bool foreign);
/// Throws Error if a file listed in `path` has changed. If configurations are named, checks only these.
void require_frozen(const std::string& path, const std::vector<std::string>& configurations = {});

}  // namespace zs::experiment

// SPDX-License-Identifier: Apache-2.0
// Trainings that are planned: registered with their whole configuration before anything runs.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.hpp"
#include "registry/record.hpp"

namespace zs::experiment {

/// Trainings as lines of JSON lists: ["NAME", "WORD", ...], a name and the words of zs-train's command line. Throws
/// UsageError at what is not one.
std::vector<Cell> read_cells(std::string_view lines);
/// The line of a training.
std::string cell_line(const std::string& name, const std::vector<std::string>& words);

/// Whether the cell, or the run, is a training of another program, which zs-record runs: "run_command" is its line.
bool is_foreign(const registry::Fields& fields);

/// Registers a run for each training, with `fields` in each record, and adds to each cell its command and its run's
/// folder. All command lines are checked before the first run is made. Throws Error or UsageError, which name the
/// training, at what zs-train would not take; then no run is left. With "run_command" among `fields`, the trainings are
/// another program's, and that is the template of their command (foreign.hpp).
std::vector<Cell> plan(std::vector<Cell> cells, const registry::Fields& fields);

/// The fields of a plan that a run's record keeps; an experiment keeps the others itself.
bool of_runs(std::string_view field);

/// Makes the folder that the field "experiment" names the results folder of these trainings, and plan()s them: writes
/// metadata.json, which keeps what the runs do not of `fields`, and frozen.sha256. Without trainings, as a comparison
/// of revisions begins, metadata.json alone.
Experiment plan_experiment(std::vector<Cell> cells, const registry::Fields& fields);

/// Plans what was planned before once more, for a script that goes on with it: of the experiment in `folder` the cells
/// that failed, are missing or were preempted, with `unfinished` also those that others may be at; of them only `names`
/// where these are given. `fields` (the process that will train them) join the records. What a single run in `folder`
/// was planned with is checked, too. The cells. Throws Error where files that were frozen have changed.
std::vector<Cell> plan_again(const std::string& folder, bool unfinished, const std::vector<std::string>* names,
                             const registry::Fields& fields);

/// What of a cell's training must not change before it starts.
std::vector<std::string> files_of(const Cell& cell);
/// Writes the SHA-256 of zs-train (of zs-record where it runs another's training) and of these files, as sha256sum
/// does, to `path`.
void freeze(const std::string& path, std::vector<std::string> files, bool foreign);
/// Throws Error where a file listed in `path` is not what it was. Where configurations are named, no others count.
void require_frozen(const std::string& path, const std::vector<std::string>& configurations = {});

}  // namespace zs::experiment

// SPDX-License-Identifier: Apache-2.0
// A training of another program as a cell of an experiment: its command, from a template and the cell's options.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "experiment/experiment.hpp"

namespace zs::experiment {

/// The options of a cell, in order, each with its value quoted for a shell, several values as several words; "true" for
/// a flag. A later option replaces an earlier one with the same name.
using Options = std::vector<std::pair<std::string, std::string>>;

/// A command that is ready to run.
struct Filled {
  std::string line;                                          ///< for a shell
  std::vector<std::pair<std::string, std::string>> files{};  ///< name in the run's folder, content
};

/// The options in a cell's words: first the keys of a configuration (a sweep's), by their last word, without the names
/// of the run and the sweep; then "--key value" words. Throws Error at a word that belongs to no option.
Options options_of(const Cell& cell);

/// The template `command` with these replaced for a cell whose run's folder is `folder`:
///   {options}    all options, as --key value
///   {KEY}        the value of an option
/// the path of the cell's configuration, if it has one
///   {run}        the run's folder
///   {file:PATH SECTION.KEY=OPTION ...}  the path of a copy of the JSON file PATH in which these values are set
///   {{           a brace
/// "${...}" belongs to the shell. If the template uses nothing of the cell, the options are appended. Values are quoted
/// for the shell. Throws Error at a name for which the cell has no option.
Filled fill(const std::string& command, const Cell& cell, const std::string& folder);

/// Throws Error if the command or the words that resume it name an option that the cell, with the configuration
/// `config` in its file, does not have.
void require_options(const std::string& command, const std::string& resume, const Cell& cell,
                     const config::Config& config);

/// The command that resumes such a run: as fill(), with the words `resume` in place of {resume} (empty in fill()), else
/// appended. {checkpoint} in them is kept: it is known only when the run resumes.
std::string fill_resumed(const std::string& command, const std::string& resume, const Cell& cell,
                         const std::string& folder);

/// The command to start a run: the planned one, or, if an earlier part of it has begun, the one that resumes it from
/// the newest valid checkpoint in its folder. `from` is that checkpoint, or "".
std::string line_to_start(const registry::Fields& record, const std::string& folder, std::string& from);

/// The configuration that is recorded for the cell.
config::Config foreign_configuration(const Filled& filled, const Cell& cell);

}  // namespace zs::experiment

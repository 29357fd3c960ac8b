// SPDX-License-Identifier: Apache-2.0
// A training of another program as a cell of an experiment: its command, made of a template and the cell's options.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "experiment/experiment.hpp"

namespace zs::experiment {

/// The options of a cell, in order, each with its value quoted for a shell, several values as several words; "true" for
/// a flag. A later one replaces an earlier one of its name.
using Options = std::vector<std::pair<std::string, std::string>>;

/// A command that is ready to run.
struct Filled {
  std::string line;                                          ///< for a shell
  std::vector<std::pair<std::string, std::string>> files{};  ///< name in the run's folder, content
};

/// The options that the words of a cell say: of a configuration in front (a sweep's), every key by its last word but
/// for the run's name and the sweep's, then "--key value" words. Throws Error at a word that belongs to no option.
Options options_of(const Cell& cell);

/// The template `command` with what stands in it for a cell whose run's folder is `folder`:
///   {options}    all options, as --key value
///   {KEY}        the value of an option
///   {config}     the path of the cell's configuration, where it has one
///   {run}        the run's folder
///   {file:PATH SECTION.KEY=OPTION ...}  the path of a copy of the JSON file PATH in which these values are set
///   {{           a brace
/// "${...}" is the shell's. Where nothing of the cell stands in it, the options stand behind it. Values are quoted for
/// the shell. Throws Error at a name that the cell has no option of.
Filled fill(const std::string& command, const Cell& cell, const std::string& folder);

/// The command that goes on with such a run: as fill(), but for the words `resume`, which stand where {resume} does (in
/// fill() nothing does), else behind the command. In them {checkpoint} stays: it is known when the run goes on.
std::string fill_resumed(const std::string& command, const std::string& resume, const Cell& cell,
                         const std::string& folder);

/// The command of a run that is about to start: what its record plans, or, where an earlier part of it has begun, what
/// goes on with it, from the newest whole checkpoint in its folder. `from` is that checkpoint, or "".
std::string line_to_start(const registry::Fields& record, const std::string& folder, std::string& from);

/// What is recorded as the configuration of that cell.
config::Config foreign_configuration(const Filled& filled, const Cell& cell);

}  // namespace zs::experiment

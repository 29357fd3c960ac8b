// SPDX-License-Identifier: Apache-2.0
// The command line of a training, and the configuration that results from it.
#pragma once
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "config/config.hpp"

namespace zs::experiment {

/// The options of zs-train that set keys of a configuration, one row each, for a command's table.
std::vector<cli::Option> config_options();

/// --local_rank, which the launchers of other trainers pass to any program.
cli::Option local_rank_option();

/// --set KEY=VALUE, for every tool that takes a configuration.
cli::Option set_option();

/// The table of zs-train.
cli::Command train_command();

/// A key of a file outside any section that is an option of zs-train is that option's key: "learning_rate: 0.1". Throws
/// Error, located, if the file has that key, too.
config::Config with_names_of_options(const config::Config& read);

/// The effective configuration: the file (an operand of `args`, if any), overridden by typed options, overridden by
/// --set; of several options, or several --set, for one key the last one wins. `stored` replaces the operand if it is
/// not empty. Throws UsageError at a --set of an unknown key that looks like a setting.
config::Config configuration(const cli::Args& args, const std::string& stored = "");

}  // namespace zs::experiment

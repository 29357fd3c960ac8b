// SPDX-License-Identifier: Apache-2.0
// The command line of a training, and the configuration that it asks for.
#pragma once
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "config/config.hpp"

namespace zs::experiment {

/// The options of zs-train that stand for keys of a configuration, one row each, for a command's table.
std::vector<cli::Option> config_options();

/// --local_rank, which the launchers of other trainers add to any program.
cli::Option local_rank_option();

/// --set KEY=VALUE, of every tool that takes a configuration.
cli::Option set_option();

/// The table of zs-train.
cli::Command train_command();

/// The effective configuration: the file (an operand of `args`, if any), over it the options typed, over these --set;
/// of options for one key, and of --set for one key, the last one typed. `stored` in place of the operand where it is
/// not empty. Throws UsageError at a --set of what looks like a setting and is read by nothing.
config::Config configuration(const cli::Args& args, const std::string& stored = "");

}  // namespace zs::experiment

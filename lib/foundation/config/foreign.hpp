// SPDX-License-Identifier: Apache-2.0
// The configuration of a training that is not zs's, as far as its command line and its files say it.
#pragma once
#include <string>
#include <vector>

#include "config/config.hpp"

namespace zs::config {

/// The words that a shell runs for "bash -c LINE"; of another command its own.
std::vector<std::string> words_of_shell(const std::vector<std::string>& command);

/// What is known: of the words of the command (--key value, --key=value, --flag, key=value as Hydra has them, behind
/// the script where there is one), of configuration files (YAML, JSON) that they name, of `files`, and of `settings`,
/// which are KEY=VALUE words; the later holds. What zs has a name for gets that: --lr is training.learning_rate, ZeRO's
/// stage in a DeepSpeed file zero.stage. Secrets are withheld. Throws Error where one of `files` cannot be read,
/// UsageError at a setting that is none; a file that the command names and that cannot be read is left to the command.
Config foreign_configuration(const std::vector<std::string>& command, const std::vector<std::string>& files,
                             const std::vector<std::string>& settings);

}  // namespace zs::config

// SPDX-License-Identifier: Apache-2.0
// The configuration of another program's training, as far as its command line and files show it.
#pragma once
#include <string>
#include <vector>

#include "config/config.hpp"

namespace zs::config {

/// The words that a shell runs for "bash -c LINE"; any other command is returned unchanged.
std::vector<std::string> words_of_shell(const std::vector<std::string>& command);

/// Collects settings from the command's words (--key value, --key=value, --flag, Hydra's key=value, after the script if
/// there is one), from configuration files (YAML, JSON) that they name, from `files`, and from `settings` (KEY=VALUE);
/// later ones win. A setting that zs knows gets the name of zs: --lr is training.learning_rate, the stage in a
/// DeepSpeed file is zero.stage. Secrets are withheld. Throws Error if one of `files` cannot be read, UsageError at a
/// malformed setting; an unreadable file that the command names is ignored.
Config foreign_configuration(const std::vector<std::string>& command, const std::vector<std::string>& files,
                             const std::vector<std::string>& settings);

}  // namespace zs::config

// SPDX-License-Identifier: Apache-2.0
// What zs-train is asked to do: the run, its configuration and settings, and what to do with them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "config/config.hpp"
#include "registry/run.hpp"
#include "setup/settings.hpp"

namespace zs::train {

using setup::Settings;

/// A setting that a run goes on with, unlike before.
struct Change {
  std::string key, then, now;
  std::string origin;  ///< who says so: "--learning_rate"
};

struct Start {
  std::optional<registry::Run> run;  ///< the one that it goes on with, or begins for a script
  bool planned = false;              ///< the run is $ZS_RUN's: it may have no checkpoint yet
  bool take_over = false;            ///< also a run that another host holds
  config::Config config;
  config::Config stored;        ///< of a run that goes on: what it had before
  std::vector<Change> changes;  ///< since then
  Settings settings;
  std::string device;  ///< "cpu" or "cuda"
  std::string task;    ///< the option that asks for something else than a training, "--print_plan"; "" for a training
  bool cost = false;   ///< of the plan that is printed
  std::string results, save_initial, dump_batches;  ///< files and a folder that a training writes; "": none
};

/// From the command line and the environment, without a word to the other ranks. Throws Error where the configuration
/// is wrong, and where a setting or an option has no effect.
Start start(const cli::Args& args, int ranks);

}  // namespace zs::train

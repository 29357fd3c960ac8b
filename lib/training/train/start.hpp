// SPDX-License-Identifier: Apache-2.0
// The task of zs-train: the run, its configuration and settings, and what to do with them.
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

/// A setting that changed since the resumed run's earlier part.
struct Change {
  std::string key, then, now;
  std::string origin;  ///< its source: "--learning_rate"
};

struct Start {
  std::optional<registry::Run> run;  ///< the one to resume, or to begin for a script
  bool planned = false;              ///< the run is $ZS_RUN's: it may have no checkpoint yet
  bool take_over = false;            ///< also take over a run that another host holds
  config::Config config;
  config::Config stored;        ///< of a resumed run: its earlier configuration
  std::vector<Change> changes;  ///< since then
  Settings settings;
  std::string device;  ///< "cpu" or "cuda"
  std::string task;    ///< the option that asks for another task, "--print_plan"; "" for a training
  bool cost = false;   ///< print the plan's costs too
  std::string results, save_initial, dump_batches;  ///< output files and folder of a training; "": none
};

/// From the command line and the environment, without communication. Throws Error if the configuration is wrong, and if
/// a setting or an option has no effect.
Start start(const cli::Args& args, int ranks);

}  // namespace zs::train

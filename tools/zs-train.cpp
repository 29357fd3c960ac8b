// SPDX-License-Identifier: Apache-2.0
#include "cli/engine.hpp"
#include "config/reading.hpp"
#include "experiment/command.hpp"

int main(int argc, char** argv) {
  const zs::cli::Command command = zs::experiment::train_command();
  const auto body = [&](const zs::cli::Args& args) -> zs::Status {
    // Rejects a bad configuration before LibTorch is loaded. A resumed run has a stored configuration, and an
    // evaluation alone reads other settings than a training.
    if (!args.has("resume") && !args.has("eval_only")) zs::config::require_effect(zs::experiment::configuration(args));
    zs::cli::become_engine(command.name, argv);
  };
  return zs::cli::run(command, argc, argv, body, zs::cli::engine_hooks());
}

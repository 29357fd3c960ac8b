// SPDX-License-Identifier: Apache-2.0
#include "cli/engine.hpp"
#include "experiment/command.hpp"

int main(int argc, char** argv) {
  const zs::cli::Command command = zs::experiment::train_command();
  return zs::cli::run(
      command, argc, argv, [&](const zs::cli::Args&) -> zs::Status { zs::cli::become_engine(command.name, argv); },
      zs::cli::engine_hooks(command.name, argv));
}

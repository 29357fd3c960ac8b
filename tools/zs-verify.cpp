// SPDX-License-Identifier: Apache-2.0
#include "cli/engine.hpp"
#include "comparison/command.hpp"
#include "comparison/session.hpp"

int main(int argc, char** argv) {
  const zs::cli::Command command = zs::comparison::command();
  const auto body = [&](const zs::cli::Args& args) {
    if (zs::comparison::trains(args)) zs::cli::become_engine(command.name, argv);
    return zs::comparison::compare(args);
  };
  return zs::cli::run(command, argc, argv, body, zs::cli::engine_hooks());
}

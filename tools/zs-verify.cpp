// SPDX-License-Identifier: Apache-2.0
#include "cli/engine.hpp"
#include "comparison/command.hpp"
#include "comparison/session.hpp"

int main(int argc, char** argv) {
  const zs::cli::Command command = zs::comparison::command();
  const auto body = [&](const zs::cli::Args& args) {
    const zs::comparison::Request request(args);
    if (request.trains()) zs::cli::become_engine(command.name, argv);
    return request.compare();
  };
  return zs::cli::run(command, argc, argv, body, zs::cli::engine_hooks());
}

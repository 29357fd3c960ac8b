// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"
#include "experiment/command.hpp"
#include "train/session.hpp"
#include "unit/arithmetic.hpp"

int main(int argc, char** argv) {
  zs::unit::choose_products(argv);
  zs::train::Session session;
  return zs::cli::run(
      zs::experiment::train_command(), argc, argv, [&](const zs::cli::Args& args) { return session.train(args); },
      session.hooks());
}

// SPDX-License-Identifier: Apache-2.0
// The training engine, as which zs-train and zs-verify train (cli/engine.hpp). Its name says as which of them.
#include <sys/prctl.h>

#include "cli/engine.hpp"
#include "comparison/command.hpp"
#include "experiment/command.hpp"
#include "train/session.hpp"
#include "unit/arithmetic.hpp"
#include "verify/session.hpp"

namespace {

int verify(int argc, char** argv) {
  zs::setup::Ranks ranks;
  zs::verify::Session session(ranks);
  return zs::cli::run(
      zs::comparison::command(), argc, argv, [&](const zs::cli::Args& args) { return session.verify(args); },
      ranks.hooks());
}

int train(int argc, char** argv) {
  zs::train::Session session;
  return zs::cli::run(
      zs::experiment::train_command(), argc, argv, [&](const zs::cli::Args& args) { return session.train(args); },
      session.hooks());
}

}  // namespace

int main(int argc, char** argv) {
  zs::unit::choose_products(argv);
  ::prctl(PR_SET_NAME, argv[0]);
  zs::cli::leave_engine(argv[0] == std::string("zs-verify") ? verify(argc, argv) : train(argc, argv));
}

// SPDX-License-Identifier: Apache-2.0
// The state digests of many trainings, or the verdicts of zs-verify, one after another on the same ranks: LibTorch, a
// GPU and NCCL start once.
//   mpirun -n N digests ROWS [cpu|cuda [auto|nccl|mpi]]
// ROWS is a file of lines "NAME OPTION...": zs-train's options, between blanks. Rank 0 prints "NAME DIGEST" for each,
// or "NAME ! WHAT" of a training that all ranks refuse; any other failure ends the program with status 2. Of a line
// "NAME zs-verify OPTION..." it prints what zs-verify prints, then "NAME status STATUS".
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/engine.hpp"
#include "comm/agree.hpp"
#include "comparison/command.hpp"
#include "experiment/command.hpp"
#include "setup/memory.hpp"
#include "setup/ranks.hpp"
#include "train/start.hpp"
#include "train/trainer.hpp"
#include "verify/session.hpp"

namespace {

using zs::comm::Group;

std::string digest(Group& group, const std::vector<std::string>& options) {
  const zs::cli::Command command = zs::experiment::train_command();
  zs::train::Start start;
  zs::comm::together(group, "reading of the options", [&] {
    start = zs::train::start(zs::cli::Args::parse(command, options), group.size());
    zs::setup::place_on(start.settings, group);
  });
  return zs::train::Trainer(group, start.settings).run("", {}, {}).state_digest;
}

std::string status(zs::setup::Ranks& ranks, const std::vector<std::string>& options) {
  const zs::cli::Command command = zs::comparison::command();
  const zs::Status ended = zs::verify::Session(ranks).verify(zs::cli::Args::parse(command, options));
  return "status " + std::to_string(static_cast<int>(ended));
}

void all(zs::setup::Ranks& ranks, const std::string& path) {
  Group& group = ranks.group();
  std::ifstream rows(path);
  for (std::string line; std::getline(rows, line);) {
    std::istringstream words(line);
    std::string name, text;
    words >> name;
    std::vector<std::string> options(std::istream_iterator<std::string>(words), {});
    const bool verified = !options.empty() && options.front() == "zs-verify";
    if (verified) options.erase(options.begin());
    try {
      text = verified ? status(ranks, options) : digest(group, options);
    } catch (const std::exception& error) {
      if (group.size() > 1 && !dynamic_cast<const zs::comm::SharedError*>(&error)) throw;
      text = std::string("! ") + error.what();
    }
    if (group.rank() == 0) std::printf("%s %s\n", name.c_str(), text.c_str()), std::fflush(stdout);
  }
}

// What the ranks hold is gone when this returns.
int run(int argc, char** argv) {
  try {
    zs::setup::Ranks ranks;
    ranks.start(50);
    ranks.use(argc > 2 ? argv[2] : "cpu", argc > 3 ? argv[3] : "auto", /*repeat=*/true);
    all(ranks, argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digests: %s\n", error.what());
    zs::comm::abort_job();
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { zs::cli::leave_engine(run(argc, argv)); }

// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"
#include "train/session.hpp"
#include "train/settings.hpp"

namespace {

zs::cli::Command command() {
  std::vector<zs::cli::Option> options = zs::train::config_options();
  options.push_back(
      {0, "set", "KEY=VALUE", "set any key of the configuration: training.seed=7", "", {}, true, "Configuration"});
  options.push_back({0,
                     "resume",
                     "RUN",
                     "go on from the newest checkpoint of a run, at any stage and rank count",
                     "",
                     {},
                     false,
                     "Running"});
  options.push_back({0,
                     "timeout",
                     "SECONDS",
                     "how long a collective waits for a rank before the run stops",
                     "50",
                     {},
                     false,
                     "Running"});
  options.push_back({0, "print_plan", "", "print the plan of a step and stop", "", {}, false, "Running"});
  options.push_back({0, "verbose_logging", "", "log every step", "", {}, false, "Running"});
  options.push_back({0, "debug_log", "", "log every step, and the state digest after each", "", {}, false, "Running"});
  options.push_back({0,
                     "save_initial",
                     "DIR",
                     "write the weights that training begins with to DIR/pytorch_model.bin",
                     "",
                     {},
                     false,
                     "Running"});
  options.push_back(
      {0, "dump_batches", "FILE", "write the tokens of every micro-batch to an HDF5 file", "", {}, false, "Running"});
  return {"zs-train",
          "Train a model under a ZeRO stage, on any number of ranks",
          "[CONFIG.yaml]",
          options,
          {{75, "stopped by a signal, with everything saved: go on with --resume"}}};
}

}  // namespace

int main(int argc, char** argv) {
  zs::train::Session session;
  return zs::cli::run(
      command(), argc, argv, [&](const zs::cli::Args& args) { return session.train(args); }, session.hooks());
}

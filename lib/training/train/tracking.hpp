// SPDX-License-Identifier: Apache-2.0
// What a training reports while it runs: the configured trackers, TensorBoard and W&B, and its lines for people.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/progress.hpp"
#include "cli/run.hpp"
#include "metric/table.hpp"
#include "registry/run.hpp"
#include "setup/settings.hpp"
#include "tracker/tensorboard.hpp"
#include "tracker/wandb.hpp"

namespace zs::train {

using setup::Settings;

class Tracking {
 public:
  /// A resumed run (its record names its W&B run) keeps that one. Writes nothing.
  Tracking(const Settings& settings, const registry::Run& run);

  /// Fields about them for the run's record and attributes: "wandb_run", "wandb_folder".
  const registry::Fields& fields() const { return fields_; }
  std::vector<metric::Writer*> writers();
  /// A line of the run's log.
  void output(const std::string& line);
  /// Ends the run with this exit code.
  void close(int exit_code);

 private:
  std::optional<tracker::TensorboardWriter> tensorboard_;
  std::optional<tracker::WandbWriter> wandb_;
  registry::Fields fields_;
};

// The output of a training for people: one line on a terminal, or the log if stdout is a file or a pipe.

/// "[####----] step 40/100  loss 3.1416  12.3 k tokens/s  0:01:23 left": `per_second` is the rate of `what`; `left` in
/// seconds.
std::string progress_line(std::int64_t step, std::int64_t steps, double loss, double per_second,
                          const std::string& what, double left);

class Display {
 public:
  /// For a training with the log file `log`.
  Display(const cli::Command& command, std::string log);

  /// A line of the log: to stdout, as long as it is read; on a terminal only notes.
  void log(const std::string& line);
  /// After each step; `records` are the records of the run so far.
  void step(const metric::Table& records, std::int64_t steps);
  /// At the end, on a terminal: the result.
  void end(double loss, const std::string& digest);

 private:
  using Clock = std::chrono::steady_clock;

  const cli::Command& command_;
  std::string log_;
  bool on_terminal_, closed_ = false, announced_ = false;
  cli::ProgressLine line_;
  Clock::time_point first_{};  ///< the end of the first step, which is slower than the rest
  std::int64_t counted_ = 0;   ///< steps since then

  void print(const std::string& line);
};

}  // namespace zs::train

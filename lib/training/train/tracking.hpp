// SPDX-License-Identifier: Apache-2.0
// The configured trackers of a training: TensorBoard and W&B.
#pragma once
#include <optional>
#include <string>
#include <vector>

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

}  // namespace zs::train

// SPDX-License-Identifier: Apache-2.0
#include "train/tracking.hpp"

#include <cstdlib>
#include <filesystem>

#include "registry/record.hpp"

namespace zs::train {

Tracking::Tracking(const Settings& settings, const registry::Run& run) {
  if (settings.tensorboard)
    tensorboard_.emplace(settings.tensorboard->empty() ? run.folder() + "/tensorboard" : *settings.tensorboard);
  if (!settings.wandb) return;
  const registry::Fields record = registry::read_record(run.folder());
  tracker::WandbRun wandb = *settings.wandb;
  const char* const common = std::getenv("WANDB_DIR");
  if (wandb.place.empty()) wandb.place = common && *common ? common : run.folder();
  wandb.id = registry::value(record, "wandb_run");
  wandb.folder = registry::value(record, "wandb_folder");
  if (wandb.name.empty()) wandb.name = registry::value(record, "run_name");
  wandb_.emplace(std::move(wandb));
  fields_ = {{"wandb_run", wandb_->id()}, {"wandb_folder", std::filesystem::absolute(wandb_->folder()).string()}};
}

std::vector<metric::Writer*> Tracking::writers() {
  std::vector<metric::Writer*> all;
  if (tensorboard_) all.push_back(&*tensorboard_);
  if (wandb_) all.push_back(&*wandb_);
  return all;
}

void Tracking::output(const std::string& line) {
  if (wandb_) wandb_->output(line);
}

void Tracking::close(int exit_code) {
  if (wandb_) wandb_->close(exit_code);
}

}  // namespace zs::train

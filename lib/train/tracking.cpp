// SPDX-License-Identifier: Apache-2.0
#include "train/tracking.hpp"

#include <cstdlib>
#include <filesystem>

#include "registry/record.hpp"

namespace zs::train {

Tracking::Tracking(const config::Config& config, const registry::Run& run) {
  const std::string folder = config.text("tracking.tensorboard_dir");
  if (config.boolean("tracking.use_tensorboard") || !folder.empty())
    tensorboard_.emplace(folder.empty() ? run.folder() + "/tensorboard" : folder);
  if (!config.boolean("tracking.use_wandb") || config.text("tracking.wandb_mode") == "disabled") return;
  const registry::Fields record = registry::read_record(run.folder());
  tracker::WandbRun wandb;
  wandb.place = config.text("tracking.wandb_dir");
  const char* const common = std::getenv("WANDB_DIR");
  if (wandb.place.empty()) wandb.place = common && *common ? common : run.folder();
  wandb.project = config.text("tracking.wandb_project");
  wandb.entity = config.text("tracking.wandb_entity");
  wandb.name = config.text("tracking.wandb_run_name");
  wandb.tags = config.list("tracking.wandb_tags");
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

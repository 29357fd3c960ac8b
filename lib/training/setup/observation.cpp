// SPDX-License-Identifier: Apache-2.0
// What a training records of itself besides its metrics: probes, trackers, profiles.
#include <filesystem>
#include <sstream>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "setup/choices.hpp"

namespace zs::setup {
namespace {

using config::setting;

/// Takes the user's options, or else the environment's variables of zs_probe.
void choose_probe(const config::Reading& config, Settings& s) {
  s.probe = config[setting<"tracking.probe">].value_or(environment_variable("ZS_PROBE"));
  if (s.probe == "off") s.probe.clear();
  if (s.probe.empty()) return;
  if (std::error_code ignored;
      std::filesystem::exists(s.probe, ignored) && !std::filesystem::is_directory(s.probe, ignored))
    throw Error(s.probe, 0, "is not a folder: --probe takes one, with a file for each rank");
  s.probe_values = config[setting<"tracking.probe_values">].value_or(environment_variable("ZS_PROBE_VALUES"));
  const std::string usual = environment_variable("ZS_PROBE_EVERY");
  const auto every = usual.empty() ? std::optional<std::int64_t>(1) : parse_int(usual);
  if (!every || *every < 1) throw Error("ZS_PROBE_EVERY: '" + usual + "' is not a whole number of at least 1");
  s.probe_every = config[setting<"tracking.probe_every">].value_or(*every);
  if (const std::string seed = environment_variable("ZS_PROBE_PERTURB"); !seed.empty()) {
    const auto value = parse_int(seed);
    if (!value || *value < 0) throw Error("ZS_PROBE_PERTURB: '" + seed + "' is not a whole number");
    s.probe_perturb = static_cast<std::uint64_t>(*value);
    s.notes.push_back("ZS_PROBE_PERTURB: each parameter is moved by one unit in the last place before the first step");
  }
  std::istringstream steps(s.probe_values == "all" ? "" : s.probe_values);
  for (std::string step; std::getline(steps, step, ',');) {
    if (const auto value = parse_int(step); !value || *value < 1)
      throw Error("tracking.probe_values: '" + step + "' is neither a step nor all");
  }
}

/// TensorBoard and W&B.
void choose_trackers(const config::Reading& config, Settings& s) {
  const auto folder = config[setting<"tracking.tensorboard_dir">];
  if (config[setting<"tracking.use_tensorboard">] || folder) s.tensorboard = folder.value_or("");
  const bool disabled = config[setting<"tracking.wandb_mode">] == "disabled";
  if (!config[setting<"tracking.use_wandb">]) return;
  tracker::WandbRun wandb{.place = config[setting<"tracking.wandb_dir">].value_or(""),
                          .project = config[setting<"tracking.wandb_project">],
                          .entity = config[setting<"tracking.wandb_entity">].value_or(""),
                          .name = config[setting<"tracking.wandb_run_name">].value_or(""),
                          .tags = config[setting<"tracking.wandb_tags">]};
  if (!disabled) s.wandb = std::move(wandb);
}

/// The profiled steps, and the folder of the profile.
void choose_profile(const config::Reading& config, Settings& s) {
  const auto steps = config[setting<"tracking.profile_steps">];
  if (steps) s.profiled = profiled_steps(*steps, config.entry(setting<"tracking.profile_steps">)->origin);
  s.profile = config[setting<"tracking.profile">] || s.profiled.last > 0;
  if (!s.profile) return;
  if (!has_profiler())
    throw Error("--profile: Debian's LibTorch has no profiler: build with PyTorch's (make TORCH_HOME=DIR)");
  s.profile_dir = config[setting<"tracking.profile_dir">].value_or("");
}

}  // namespace

void choose_observation(const config::Reading& config, Settings& s) {
  choose_profile(config, s);
  choose_probe(config, s);
  choose_trackers(config, s);
}

void choose_checkpoints(const config::Reading& config, Settings& s) {
  s.save_steps = config[setting<"training.save_steps">];
  s.save_final = config[setting<"training.save_final">];
  s.save_pretrained = config[setting<"training.save_pretrained">].value_or("");
  if (s.save_steps > 0) s.keep_last = config[setting<"training.keep_last">];
  if (s.save_steps == 0 && !s.save_final) return;
  s.checkpoint_format = config[setting<"training.checkpoint_format">].value_or("");
  s.save_gradients = config[setting<"training.save_gradients">];
  s.save_gradient_norms = config[setting<"training.save_gradient_norms">];
  if (!s.save_gradient_norms) return;
  const auto refuse = [&](const std::string& why) {
    const config::Entry* const entry = config.entry(setting<"training.save_gradient_norms">);
    throw Error(entry->origin + ": " + entry->key + " is of " + why);
  };
  if (!s.save_gradients) refuse("gradients that are saved: leave out save_gradients, which is false");
  if (s.chunks > 1) refuse("whole micro-batches, and sequences are computed in chunks: leave it out");
  if (s.experts > 1) refuse("whole micro-batches, and experts are divided among ranks: leave it out");
}

}  // namespace zs::setup

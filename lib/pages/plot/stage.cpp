// SPDX-License-Identifier: Apache-2.0
#include "plot/stage.hpp"

#include <algorithm>

#include "figure/axis.hpp"
#include "summary/difference.hpp"

namespace zs::plot {
namespace {

using summary::Condition;

/// "ZeRO-1 (baseline)"; the condition's name if its records have no stage.
std::string stage_name(const Condition& condition) {
  const std::string backend = condition.attribute("backend"), stage = condition.attribute("zero_stage");
  const bool sharded = backend.empty() || backend == "zero" || backend == "deepspeed";
  if (sharded && stage.empty()) return condition.name;
  std::string variant;
  const auto add = [&](const std::string& word) { variant += (variant.empty() ? "" : ", ") + word; };
  const auto on = [&](const char* key) { return condition.attribute(key) == "true"; };
  if (on("deepcompile")) add("DeepCompile");
  if (on("compile")) add("compile");
  if (on("activation_checkpointing")) add("checkpointing");
  if (condition.attribute("activation_checkpointing") == "selective") add("selective checkpointing");
  if (const std::string place = condition.attribute("offload"); !place.empty() && place != "none") {
    const std::string share = condition.attribute("offload_ratio");
    add("offload " + place + (share.empty() || share == "1" ? "" : " " + share));
  }
  if (sharded) return "ZeRO-" + stage + " (" + (variant.empty() ? "baseline" : variant) + ")";
  const std::string name = backend == "fsdp" ? "FSDP" : backend == "ddp" ? "DDP" : backend;
  return variant.empty() ? name : name + " (" + variant + ")";
}

}  // namespace

std::vector<std::string> stage_names(const std::vector<Condition>& conditions) {
  std::vector<std::string> all;
  for (const Condition& condition : conditions) all.push_back(stage_name(condition));
  std::vector<std::string> unlike = all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::count(all.begin(), all.end(), all[i]) > 1) unlike[i] += ", " + conditions[i].name;
  }
  return unlike;
}

std::vector<std::string> setting_names(const std::vector<Condition>& conditions) {
  std::vector<std::string> names, settings;
  const std::vector<std::string> keys = summary::parameters(conditions);
  bool counted = !keys.empty();  // names that only count, "sweep_001", say nothing
  for (const Condition& condition : conditions) {
    names.push_back(condition.name);
    counted = counted && (condition.attribute("report") == "sweep" || condition.name.starts_with("sweep_"));
    std::string setting;
    for (const std::string& key : keys) {
      if (const std::string value = condition.attribute(key); !value.empty())
        setting += (setting.empty() ? "" : ", ") + std::string(attribute::label(key)) + " " +
                   figure::labels(std::vector{value}).front();
    }
    settings.push_back(setting.empty() ? condition.name : setting);
  }
  return counted ? settings : names;
}

}  // namespace zs::plot

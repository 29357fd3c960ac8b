// SPDX-License-Identifier: Apache-2.0
#include "model/peft.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"

namespace zs::model {
namespace {

/// Words of a list; none where it is not there.
std::vector<std::string> words(const Configuration& config, const char* key) {
  if (!config.has(key)) return {};
  const nlohmann::json& value = config.values()[key];
  const bool fits = value.is_array() && std::ranges::all_of(value, [](const auto& each) { return each.is_string(); });
  if (!fits) config.refuse(key, "is " + value.dump() + ", expected a list of names");
  return value.get<std::vector<std::string>>();
}

std::vector<std::string> targets(const Configuration& config) {
  const char* const kKey = "target_modules";
  if (!config.has(kKey)) config.refuse(kKey, "is not there: peft's own choice for a model is its own, name them");
  if (config.values()[kKey] == "all-linear") return {"all-linear"};
  if (config.values()[kKey].is_string())
    config.refuse(kKey, "is a regular expression, " + config.values()[kKey].dump() + ": name the modules in a list");
  std::vector<std::string> named = words(config, kKey);
  if (named.empty()) config.refuse(kKey, "is empty: name the modules that have adapters");
  // With all-linear, peft may also list its own copies of a module that is trained whole: they get no adapters.
  std::erase_if(named, [](const std::string& target) {
    return target.ends_with(".original_module") || target.find(".modules_to_save.") != std::string::npos;
  });
  return named;
}

}  // namespace

Adaptation read_peft(const std::string& folder) {
  const std::string path = folder + "/" + kAdapterConfig;
  const Configuration config = Configuration::read(path);
  const nlohmann::json none = nlohmann::json::object();
  config.require("peft_type", {"LORA"});
  config.require("bias", {"none"});
  config.require("lora_dropout", {0.0, 0});
  // Others change the weights of the model itself.
  config.require("init_lora_weights", {true, false, "gaussian"});
  config.require("target_parameters", {nlohmann::json::array()});  // of experts, which are stacked
  for (const char* const key : {"rank_pattern", "alpha_pattern", "loftq_config"}) config.require(key, {none});
  config.require_known(
      "peft_type task_type auto_mapping peft_version base_model_name_or_path revision inference_mode r "
      "target_modules target_parameters lora_alpha lora_dropout fan_in_fan_out bias use_rslora modules_to_save "
      "init_lora_weights rank_pattern alpha_pattern loftq_config megatron_core qalora_group_size runtime_config",
      "a LoRA of peft");
  return {.rank = static_cast<int>(config.integer("r", 8)),
          .alpha = config.real("lora_alpha", 8),
          .rank_stabilized = config.boolean("use_rslora", false),
          .targets = targets(config),
          .modules = words(config, "modules_to_save"),
          .file = path};
}

void require_same_factor(const Adaptation& adaptation, const std::string& folder) {
  const std::string path = folder + "/" + kAdapterConfig;
  if (!adaptation.adapts() || !is_there(path)) return;
  const Adaptation theirs = read_peft(folder);
  if (theirs.rank != adaptation.rank || theirs.scale() == adaptation.scale()) return;
  throw Error(path, 0,
              "adapters count " + to_text(theirs.scale()) + " times, and in this training " +
                  to_text(adaptation.scale()) + " times: set --lora_alpha " + to_text(theirs.alpha) +
                  (theirs.rank_stabilized ? " --use_rslora" : ""));
}

std::string peft_json(const Model& model, const Adaptation& adaptation) {
  const auto& units = model.units;
  const bool transposed = std::ranges::any_of(units, [](const auto& unit) {
    return std::ranges::any_of(unit->parameters(), [](const unit::Parameter& parameter) {
      return parameter.adapter >= 0 && parameter.product == unit::Parameter::Product::in_out;
    });
  });
  const nlohmann::ordered_json modules =
      adaptation.modules.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(adaptation.modules);
  const nlohmann::ordered_json json = {
      {"peft_type", "LORA"},
      {"task_type", model.takes_images() ? nlohmann::ordered_json() : nlohmann::ordered_json("CAUSAL_LM")},
      {"base_model_name_or_path", model.name},
      {"r", adaptation.rank},
      {"lora_alpha", adaptation.alpha},
      {"lora_dropout", 0.0},
      {"use_rslora", adaptation.rank_stabilized},
      {"bias", "none"},
      {"fan_in_fan_out", transposed},
      {"target_modules", target_modules(units)},
      {"modules_to_save", modules},
      {"init_lora_weights", true},
      {"inference_mode", true}};
  return json.dump(2) + "\n";
}

}  // namespace zs::model

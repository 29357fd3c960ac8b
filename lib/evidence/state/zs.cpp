// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "compare/content.hpp"
#include "state/read.hpp"
#include "state/sums.hpp"
#include "state/weights.hpp"

namespace zs::state {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStates = "accelerator_states";

/// A document by dotted names.
void add(State& into, const std::string& name, const nlohmann::json& value) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, item] : value.items()) add(into, name + "." + key, item);
  } else {
    into.facts[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

/// The settings of the optimizer, as a group of PyTorch's has them.
void settings(State& into, const nlohmann::json& optimizer) {
  std::map<std::string, std::string> hyper;
  if (const auto name = optimizer.find("name"); name != optimizer.end() && name->is_string())
    into.facts["training.optimizer"] = name->get<std::string>();
  for (const auto& [key, value] : optimizer.items()) {
    const bool pair = value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number();
    if (value.is_number()) hyper[key] = to_text(value.get<double>());
    if (pair) hyper[key] = "(" + to_text(value[0].get<double>()) + ", " + to_text(value[1].get<double>()) + ")";
  }
  std::set<std::string> undecayed;
  if (const auto names = optimizer.find("no_decay"); names != optimizer.end() && names->is_array()) {
    for (const auto& name : *names) {
      if (name.is_string()) undecayed.insert(name.get<std::string>());
    }
  }
  for (Parameter& parameter : into.parameters) {
    if (parameter.buffer) continue;
    parameter.hyper = hyper;
    if (undecayed.contains(parameter.name)) parameter.hyper["weight_decay"] = "0.0";
  }
}

void state_json(State& into, const std::string& path) {
  const auto json = nlohmann::json::parse(Input(path).read_all(), nullptr, false);
  if (!json.is_object()) {
    into.faults.push_back(located(path, 0, "is no JSON object"));
    return;
  }
  const auto number = [&](const char* key) -> std::optional<std::int64_t> {
    return json.contains(key) && json[key].is_number_integer() ? std::optional(json[key].get<std::int64_t>())
                                                               : std::nullopt;
  };
  into.step = number("step"), into.ranks = number("world_size"), into.stage = number("zero_stage");
  if (json.contains("format") && json["format"].is_string()) into.version = json["format"].get<std::string>();
  if (const auto updates = number("updates")) {
    for (Parameter& parameter : into.parameters) {
      if (!parameter.buffer) parameter.step = static_cast<double>(*updates);
    }
    into.facts["schedule.last_epoch"] = to_text(*updates);  // it waits for steps that loss scaling skips
  }
  for (const auto& [key, value] : json.items()) {
    if (key == "format" || key == "step" || key == "world_size" || key == "zero_stage") continue;
    if (key == "optimizer") {
      settings(into, value);
      continue;
    }
    const std::string kind = key == "loss_scaler"                  ? "scaler"
                             : key == "random" || key == "sampler" ? "random." + key
                                                                   : "training." + key;
    add(into, kind, value);
  }
}

/// A model whose head is its embedding has one of the two in its checkpoint; whoever loads it by name asks for both.
void add_head(State& into, const std::string& path) {
  if (!fs::exists(path)) return;
  const auto config = nlohmann::json::parse(Input(path).read_all(), nullptr, false);
  const auto tied = config.is_object() ? config.find("tie_word_embeddings") : config.end();
  if (!config.is_object() || tied == config.end() || !tied->is_boolean() || !tied->get<bool>()) return;
  for (const char* const embedding : {"transformer.wte.weight", "model.embed_tokens.weight"}) {
    const Parameter* const own = into.find(embedding);
    if (own && !into.find("lm_head.weight")) {
      const Whole weight = *own->weight;
      Parameter& head = into.parameter("lm_head.weight");
      head.weight = weight, head.tied = embedding;
    }
  }
}

/// Faults of the files, by the folder's checksums.
void check_sums(State& into) {
  std::map<std::string, std::string> sums;
  try {
    sums = read_sums(into.folder);
  } catch (const Error& error) {
    into.faults.push_back(error.what());
    return;
  }
  into.faults = unlike_sums(into.folder, sums);
  for (const auto& [file, digest] : sums) {
    try {
      if (fs::exists(into.folder + "/" + file)) require_sum(into.folder, file, digest);
    } catch (const std::exception& error) {
      into.faults.push_back(error.what());
    }
  }
}

}  // namespace

State read_zs(const std::string& folder) {
  State state;
  state.path = state.folder = folder;
  state.framework = "zs";
  state.ordered = false;  // the units of zs have an order of their own
  for (const std::string& file : files(folder)) state.files.push_back({file, fs::file_size(folder + "/" + file), -1});
  check_sums(state);
  if (!state.faults.empty()) {
    state.layout = "damaged";
    return state;
  }
  add_model(state, folder);
  add_head(state, folder + "/config.json");
  for (const compare::Part& part : compare::optimizer_parts(folder + "/" + kStates)) {
    const std::size_t point = part.name.find('.');
    Parameter& parameter = state.parameter(part.name.substr(point + 1));
    const std::string kind = part.name.substr(0, point);
    tensorfile::Shape shape;
    if (parameter.weight) shape = parameter.weight->shape;
    Whole& whole = parameter.moments.try_emplace(kind, Whole{part.tensor.dtype, shape}).first->second;
    whole.pieces.push_back({part.tensor, part.begin, {}, -1, kStates});
  }
  state.layout = "by parameter";
  state_json(state, folder + "/" + kStates + "/state.json");
  return state;
}

}  // namespace zs::state

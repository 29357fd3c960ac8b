// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/read.hpp"
#include "checkpoints/sums.hpp"
#include "checkpoints/weights.hpp"
#include "optimizer/optimizer.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;
using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::Shape;
using tensorfile::Tensor;
using tensorfile::Value;

constexpr const char* kStates = "accelerator_states";
constexpr const char* kShard = "accelerator_states/optimizer_";  // and the rank

/// The settings of the optimizer, as a group of PyTorch's has them.
void take_settings(State& into, const nlohmann::json& optimizer) {
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
    if (undecayed.contains(parameter.name)) parameter.hyper["weight_decay"] = "0";
  }
}

void state_json(State& into, const std::string& path) {
  const nlohmann::json json = read_json(path);
  if (!json.is_object()) throw Error(path, 0, "is no JSON object");
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
  if (const auto scaler = json.find("loss_scaler"); scaler != json.end() && scaler->is_object())
    into.skipped =
        scaler->value("skipped", nlohmann::json()).is_number() ? scaler->at("skipped").get<std::int64_t>() : 0;
  for (const auto& [key, value] : json.items()) {
    if (key == "format" || key == "step" || key == "world_size" || key == "zero_stage") continue;
    if (key == "optimizer") {
      take_settings(into, value);
      continue;
    }
    const std::string kind = key == "loss_scaler"                  ? "scaler"
                             : key == "random" || key == "sampler" ? "random." + key
                                                                   : "training." + key;
    add_json(into.facts, kind, value);
  }
}

/// A model whose head is its embedding has one of the two in its checkpoint; whoever loads it by name asks for both.
void add_head(State& into) {
  const auto tied = into.config.find("tie_word_embeddings");
  if (tied == into.config.end() || tied->second != "true") return;
  for (const char* const embedding : {"transformer.wte.weight", "model.embed_tokens.weight"}) {
    const Parameter* const tied_to = into.find(embedding);
    if (tied_to && tied_to->weight && !into.find("lm_head.weight")) {
      const Whole weight = *tied_to->weight;
      Parameter& head = into.parameter("lm_head.weight");
      head.weight = weight, head.tied = embedding;
    }
  }
}

/// The optimizer state that a file optimizer_RANK.pt has: parts of moments, and the place of each in its tensor.
void optimizer_file(State& into, const std::string& file, const std::vector<std::string_view>& kept) {
  const std::string path = into.folder + "/" + file;
  const Value root = tensorfile::read_torch(path);
  const Value* const offsets = root.find("offset");
  for (const std::string_view kind : kept) {
    const Value* const values = root.find(kind);
    if (!offsets || !values || !values->get<Dict>()) throw Error(path, 0, "is no part of zs's optimizer state");
    for (const Item& item : values->get<Dict>()->items) {
      const std::string* const name = item.key.get<std::string>();
      const Tensor* const tensor = item.value.get<Tensor>();
      const Value* const begin = name ? offsets->find(*name) : nullptr;
      if (!tensor || !begin || tensor->shape.size() != 1) throw Error(path, 0, "is no part of zs's optimizer state");
      Parameter& parameter = into.parameter(*name);
      const auto shape = parameter.weight ? parameter.weight->shape : Shape{};
      Whole& whole = parameter.moments.try_emplace(std::string(kind), Whole{tensor->dtype, shape}).first->second;
      whole.pieces.push_back({*tensor, begin->integer(path), {}, -1, file});
    }
  }
}

/// The state of the optimizer of that name. Checkpoints of an older zs do not name it: it is AdamW.
std::vector<std::string_view> kept_names(const State& state) {
  const auto said = state.facts.find("training.optimizer");
  const std::string name = said == state.facts.end() ? "adamw" : said->second;
  const optimizer::Description* const known = optimizer::named(name);
  if (!known) throw Error(state.folder, 0, "optimizer is " + name + ", which this zs does not have");
  return optimizer::kept_names(*known);
}

/// Faults of the files, by the folder's checksums.
void check_sums(State& into) {
  if (!fs::exists(into.folder + "/" + kSums)) {
    into.notes.emplace_back("it has no SHA256SUMS: a damaged byte may go unseen");
    return;
  }
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
  std::vector<std::string> shards;
  for (const std::string& file : files(folder)) {
    state.files.push_back({file, fs::file_size(folder + "/" + file), -1});
    if (file.starts_with(kShard) && file.ends_with(".pt"))
      shards.push_back(file);
    else if (!is_read(file) && file != kSums)
      state.unread.push_back(file);
  }
  check_sums(state);
  if (!state.faults.empty()) {
    state.layout = "damaged";
    return state;
  }
  state.layout = "by parameter";
  state.attempt([&] { add_model(state, folder); });
  add_documents(state, folder);
  add_head(state);
  const std::string document = folder + "/" + kStates + "/state.json";
  if (fs::exists(document)) state.attempt([&] { state_json(state, document); });
  state.attempt([&] {
    const auto kept = kept_names(state);
    for (const std::string& shard : shards) optimizer_file(state, shard, kept);
  });
  return state;
}

}  // namespace zs::checkpoints

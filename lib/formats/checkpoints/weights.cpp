// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/weights.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/json.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/value_json.hpp"
#include "tensorfile/state_dict.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;
using tensorfile::StateDict;
using tensorfile::Tensor;
using Named = std::vector<std::pair<std::string, Tensor>>;

void add(State& into, const Named& tensors, const std::string& file, int rank) {
  std::map<View, std::string> seen;
  for (const auto& [name, tensor] : tensors) {
    Parameter& parameter = into.parameter(name);
    parameter.weight = whole(tensor, file, rank);
    const auto [found, fresh] = seen.emplace(view_of(tensor), name);
    if (!fresh && tensor.count() > 0) parameter.tied = found->second;
  }
}

/// Adds all that a file of torch.save has besides its weights, as facts LEAD NAME; `dict` has the names.
void add_others(State& into, const StateDict& dict, const std::string& lead) {
  if (dict.others().empty() || dict.path().find("safetensors") != std::string::npos) return;
  if (dict.path().ends_with(".json")) {
    for (const std::string& name : dict.others()) into.facts[lead + name] = "a tensor that the index leaves out";
    return;
  }
  const tensorfile::Value root = tensorfile::read_torch_objects(dict.path());
  note_content(into, root);
  for (const std::string& name : dict.others()) {
    if (const tensorfile::Value* const value = root.find(name)) add_facts(into, lead + name, *value);
  }
}

/// Other files of weights in `folder`: they must say the same, else they are a fault.
void compare_others(State& into, const std::string& folder, const StateDict& dict) {
  for (const char* const file :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    const std::string path = folder + "/" + file;
    std::error_code failure;
    if (!is_there(path) || fs::equivalent(path, dict.path(), failure)) continue;
    const StateDict other = tensorfile::open_state_dict(path);
    std::string unlike = other.entries().size() == dict.entries().size() ? "" : "another number of tensors";
    for (const auto& entry : other.entries()) {
      const Tensor* const tensor = dict.find(entry.name);
      if (unlike.empty() && (!tensor || !same_bits(*tensor, entry.tensor))) unlike = "another " + entry.name;
    }
    if (!unlike.empty())
      into.fault(path, "has " + unlike + " than " + fs::path(dict.path()).filename().string() +
                           ": remove the one that is not of this checkpoint");
  }
}

using Json = nlohmann::ordered_json;
constexpr const char* kKey = "zs_state";

}  // namespace

void add_weights(State& into, const tensorfile::Value* dict, const std::string& file, int rank) {
  add(into, tensors_of(dict), file, rank);
  for (const tensorfile::Item& item : items_of(dict)) {
    if (!item.value.get<Tensor>() && !item.value.is_none()) add_facts(into, "model." + key_text(item.key), item.value);
  }
}

void add_model(State& into, const std::string& path, const std::string& lead) {
  const StateDict dict = tensorfile::open_state_dict(path);
  const std::string file = fs::path(dict.path()).filename().string();
  // Safetensors have their tensors by type and name.
  into.ordered = into.ordered && file.find("safetensors") == std::string::npos;
  Named tensors;
  for (const auto& entry : dict.entries()) tensors.emplace_back(lead + entry.name, entry.tensor);
  add(into, tensors, file, -1);
  add_others(into, dict, "model." + lead);
  if (fs::is_directory(path)) compare_others(into, path, dict);
}

void add_documents(State& into, const std::string& folder) {
  const auto take = [&](const char* file, const auto& part) {
    const std::string path = folder + "/" + file;
    if (is_there(path)) into.attempt([&] { part(path); });
  };
  for (const auto& [file, kind] : {std::pair{"gradients.pt", "gradient"}, {"gradient_norms.pt", "gradient norms"}}) {
    take(file, [&](const std::string& path) {
      const tensorfile::Value root = tensorfile::read_torch(path);
      for (const auto& [name, tensor] : tensors_of(&root)) into.parameter(name).gradients[kind] = whole(tensor, file);
    });
  }
  take("config.json", [&](const std::string& path) {
    add_json(into.config, "", read_json(path));
    // Left out: who wrote it, and the layout, which decides no bit.
    std::erase_if(into.config, [](const auto& one) {
      return one.first == "transformers_version" || one.first == "_name_or_path" ||
             attribute::role(one.first) == attribute::Role::layout;
    });
  });
}

tensorfile::Metadata metadata_of(const State& state, std::map<std::string, Whole>& tensors) {
  const TakeTensor take = [&](std::string name, const Tensor& tensor) {
    while (!tensors.emplace(name, whole(tensor, "")).second) name += '_';
    return name;
  };
  Json json = {{"framework", state.framework},
               {"version", state.version},
               {"facts", Json::object()},
               {"values", Json::object()},
               {"parameters", Json::array()}};
  if (state.step) json["step"] = *state.step;
  if (state.skipped) json["skipped"] = *state.skipped;
  for (const auto& [name, text] : state.facts) {
    const auto value = state.values.find(name);
    if (value == state.values.end())
      json["facts"][name] = text;
    else
      json["values"][name] = json_of(value->second, name, take);
  }
  for (const Parameter& parameter : state.parameters) {
    Json one = {{"name", parameter.name}, {"hyper", Json::object()}};
    for (const auto& [key, text] : parameter.hyper) one["hyper"][key] = text;
    for (const auto& [key, value] : parameter.values)
      one["values"][key] = json_of(value, key + "." + parameter.name, take);
    if (parameter.step) one["step"] = *parameter.step;
    if (!parameter.tied.empty()) one["tied"] = parameter.tied;
    if (parameter.group >= 0) one["group"] = parameter.group;
    if (parameter.buffer) one["buffer"] = true;
    if (parameter.frozen) one["frozen"] = true;
    json["parameters"].push_back(std::move(one));
  }
  return {{kKey, json.dump(-1, ' ', false, Json::error_handler_t::replace)}};
}

void add_safetensors(State& into, const std::string& path) {
  const tensorfile::Safetensors held = tensorfile::read_safetensors(path);
  const auto found = std::ranges::find_if(held.metadata, [](const auto& each) { return each.first == kKey; });
  const Json json = found == held.metadata.end() ? Json() : Json::parse(found->second, nullptr, false);
  const std::string file = std::filesystem::path(path).filename().string();
  std::set<std::string> given;  // tensors of values
  const GiveTensor give = [&](const std::string& name) {
    const auto tensor = std::ranges::find(held.tensors, name, [](const auto& each) { return each.first; });
    if (tensor == held.tensors.end()) throw Error(path, 0, "has no tensor " + name + ", which its __metadata__ says");
    given.insert(name);
    return tensor->second;
  };
  try {
    for (const Json& one : json.at("parameters")) {
      Parameter& parameter = into.parameter(one.at("name").get<std::string>());
      if (one.contains("step")) parameter.step = one["step"].get<double>();
      parameter.tied = one.value("tied", "");
      parameter.group = one.value("group", -1);
      parameter.buffer = one.value("buffer", false), parameter.frozen = one.value("frozen", false);
      for (const auto& [key, text] : one.at("hyper").items()) parameter.hyper[key] = text.get<std::string>();
      if (one.contains("values")) {
        for (const auto& [key, value] : one["values"].items()) parameter.values[key] = value_of_json(value, give);
      }
    }
    for (const auto& [name, text] : json.at("facts").items()) into.facts[name] = text.get<std::string>();
    // Files of an older zs have none.
    const Json values = json.value("values", Json::object());
    for (const auto& [name, value] : values.items()) {
      into.values[name] = value_of_json(value, give);
      into.facts[name] = text_of(into.values[name]);
    }
    if (json.contains("step")) into.step = json["step"].get<std::int64_t>();
    if (json.contains("skipped")) into.skipped = json["skipped"].get<std::int64_t>();
  } catch (const Json::exception&) {
    return into.fault(path, "has no __metadata__ of zs that says whose states these are");
  }
  for (const auto& [name, tensor] : held.tensors) {
    if (given.contains(name)) continue;
    std::size_t point = name.find('.');
    while (point != std::string::npos && !into.find(std::string_view(name).substr(point + 1)))
      point = name.find('.', point + 1);  // a kind with points
    const std::string kind = name.substr(0, point),
                      parameter_name = point == std::string::npos ? "" : name.substr(point + 1);
    if (!into.find(parameter_name)) {
      into.fault(path, name + ": is of no parameter");
      continue;
    }
    Parameter& parameter = into.parameter(parameter_name);
    (kind == "master" ? parameter.master.emplace() : parameter.moments[kind]) = whole(tensor, file);
  }
}

}  // namespace zs::checkpoints

// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/safetensors.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace zs::checkpoints {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kKey = "zs_state";

}  // namespace

tensorfile::Metadata metadata_of(const State& state) {
  Json json = {{"framework", state.framework},
               {"version", state.version},
               {"facts", Json::object()},
               {"parameters", Json::array()}};
  if (state.step) json["step"] = *state.step;
  if (state.skipped) json["skipped"] = *state.skipped;
  for (const auto& [name, text] : state.facts) json["facts"][name] = text;
  for (const Parameter& parameter : state.parameters) {
    Json one = {{"name", parameter.name}, {"hyper", Json::object()}};
    for (const auto& [key, text] : parameter.hyper) one["hyper"][key] = text;
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
  const auto found =
      std::find_if(held.metadata.begin(), held.metadata.end(), [](const auto& each) { return each.first == kKey; });
  const Json json = found == held.metadata.end() ? Json() : Json::parse(found->second, nullptr, false);
  const std::string file = std::filesystem::path(path).filename().string();
  try {
    for (const Json& one : json.at("parameters")) {
      Parameter& parameter = into.parameter(one.at("name").get<std::string>());
      if (one.contains("step")) parameter.step = one["step"].get<double>();
      parameter.tied = one.value("tied", "");
      parameter.group = one.value("group", -1);
      parameter.buffer = one.value("buffer", false), parameter.frozen = one.value("frozen", false);
      for (const auto& [key, text] : one.at("hyper").items()) parameter.hyper[key] = text.get<std::string>();
    }
    for (const auto& [name, text] : json.at("facts").items()) into.facts[name] = text.get<std::string>();
    if (json.contains("step")) into.step = json["step"].get<std::int64_t>();
    if (json.contains("skipped")) into.skipped = json["skipped"].get<std::int64_t>();
  } catch (const Json::exception&) {
    into.faults.push_back(located(path, 0, "has no __metadata__ of zs that says whose states these are"));
    return;
  }
  for (const auto& [name, tensor] : held.tensors) {
    const std::size_t point = name.find('.');
    const std::string kind = name.substr(0, point), of = point == std::string::npos ? "" : name.substr(point + 1);
    if (!into.find(of)) {
      into.faults.push_back(located(path, 0, name + ": is of no parameter"));
      continue;
    }
    Parameter& parameter = into.parameter(of);
    (kind == "master" ? parameter.master.emplace() : parameter.moments[kind]) = whole(tensor, file);
  }
}

}  // namespace zs::checkpoints

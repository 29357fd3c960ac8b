// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/mapped.hpp"
#include "base/number.hpp"
#include "compare/content.hpp"
#include "state/read.hpp"
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
  }
  for (const auto& [key, value] : json.items()) {
    if (key == "format" || key == "step" || key == "world_size" || key == "zero_stage") continue;
    const std::string kind = key == "loss_scaler"                  ? "scaler"
                             : key == "learning_rate"              ? "schedule.learning_rate"
                             : key == "random" || key == "sampler" ? "random." + key
                                                                   : "training." + key;
    add(into, kind, value);
  }
}

/// The sums that the folder has of its files.
void sums(State& into) {
  const std::string path = into.folder + "/SHA256SUMS";
  if (!fs::exists(path)) {
    into.faults.push_back(located(path, 0, "is missing: zs cannot check whether the files are whole"));
    return;
  }
  std::istringstream lines(Input(path).read_all());
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.size() < 67 || line.substr(64, 2) != "  " || line.find("..") != std::string::npos || line[66] == '/') {
      into.faults.push_back(located(path, number, "expected a digest and a file of the folder"));
      continue;
    }
    const std::string file = into.folder + "/" + line.substr(66);
    std::error_code failure;
    if (!fs::is_regular_file(file, failure))
      into.faults.push_back(located(file, 0, "is missing, but SHA256SUMS lists it"));
    else if (sha256(Mapping::open(file)->bytes()) != line.substr(0, 64))
      into.faults.push_back(located(file, 0, "does not have the checksum that SHA256SUMS gives: the file is damaged"));
  }
}

}  // namespace

State read_zs(const std::string& folder) {
  State state;
  state.path = state.folder = folder;
  state.framework = "zs";
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    std::error_code failure;
    if (entry.is_regular_file(failure))
      state.files.push_back({fs::relative(entry.path(), folder).string(), entry.file_size(failure), -1});
  }
  std::sort(state.files.begin(), state.files.end(), [](const File& a, const File& b) { return a.name < b.name; });
  sums(state);
  if (!state.faults.empty()) {
    state.layout = "damaged";
    return state;
  }
  add_model(state, folder);
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

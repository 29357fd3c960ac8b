// SPDX-License-Identifier: Apache-2.0
#include "parse/directory.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "parse/names.hpp"

namespace zs::parse {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// The options of a command line that say what the run was: "--zero_stage 1" -> zero_stage=1, "--compile" -> compile=true.
void add_command(const std::string& command, std::map<std::string, std::string>& attributes) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < command.size();) {
    const std::size_t end = std::min(command.find(' ', at), command.size());
    if (end > at) words.push_back(command.substr(at, end - at));
    at = end + 1;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--") || words[i].size() < 3) continue;
    std::string key = words[i].substr(2), value = "true";
    if (const std::size_t equals = key.find('='); equals != std::string::npos) {
      value = key.substr(equals + 1);
      key.resize(equals);
    } else if (i + 1 < words.size() && !words[i + 1].starts_with("--")) {
      value = words[++i];
    }
    std::replace(key.begin(), key.end(), '-', '_');
    if (key != "set") attributes.emplace(attribute_named(key), value);
  }
}

}  // namespace

std::vector<Job> read_directory(const std::string& path) {
  const std::filesystem::path folder(path);
  const std::string metadata = (folder / "metadata.json").string();
  if (!std::filesystem::exists(metadata)) throw Error(path, 0, "is a directory without metadata.json; name its logs");
  std::vector<Job> jobs;
  try {
    const Json content = Json::parse(Input(metadata).read_all());
    const Json& conditions = content.at("conditions");
    std::vector<std::string> order;
    if (content.contains("condition_order")) order = content.at("condition_order").get<std::vector<std::string>>();
    for (const auto& [name, ignored] : conditions.items()) {
      if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
    }
    for (const std::string& name : order) {
      Job job{name, {}, {}, true};
      if (!conditions.contains(name)) throw Error(metadata, 0, "condition '" + name + "' is in condition_order, not in conditions");
      for (const auto& [key, value] : conditions.at(name).items()) {
        const std::string text = text_of(value);
        if (!value.is_null() && !value.is_structured() && !(key == "wandb_run" && text == "unknown")) job.attributes[key] = text;
      }
      if (content.contains("experiment_date")) job.attributes["experiment_date"] = text_of(content.at("experiment_date"));
      for (const char* ending : {".log", ".log.gz"}) {
        const auto log = folder / (name + ending);
        if (job.logs.empty() && std::filesystem::exists(log)) job.logs.push_back(log.string());
      }
      if (job.logs.empty()) job.fault = {(folder / (name + ".log")).string(), 0, "the log of condition '" + name + "' is missing"};
      if (job.attributes.count("command")) add_command(std::string(job.attributes["command"]), job.attributes);
      jobs.push_back(std::move(job));
    }
  } catch (const Json::exception& error) {
    std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    what.erase(0, what.find("] ") + 2);
    throw Error(metadata, 0, what);
  }
  return jobs;
}

}  // namespace zs::parse

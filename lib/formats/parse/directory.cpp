// SPDX-License-Identifier: Apache-2.0
#include "parse/run.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/folder.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "metric/file.hpp"
#include "parse/names.hpp"
#include "parse/text.hpp"
#include "parse/tracked.hpp"

namespace zs::parse {
namespace {

using Json = nlohmann::ordered_json;
using Attributes = std::map<std::string, std::string>;

/// A batch: conditions in order, and facts about the whole.
struct Batch {
  std::vector<std::pair<std::string, Attributes>> conditions;
  Attributes whole;
  std::vector<std::string> silent;  ///< conditions of which it says that they have no log

  Attributes* find(std::string_view name) {
    const auto found = std::ranges::find_if(conditions, [&](const auto& c) { return c.first == name; });
    return found == conditions.end() ? nullptr : &found->second;
  }
};

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// A command or its options, as one line: that, or a list of its words.
std::string command_of(const Json& value) {
  if (!value.is_array()) return text_of(value);
  std::vector<std::string> words;
  for (const Json& word : value) words.push_back(text_of(word));
  return shell_quoted(words);
}

/// The exit code for a "status": a number, or the word
/// of batch scripts' summary tables; "" for others.
std::string exit_code_of(const std::string& status) {
  if (status == "SUCCESS" || status == "success") return "0";
  if (status == "FAILED" || status == "failed") return "1";
  return parse_int(status) ? status : "";
}

/// metadata.json: {"experiment_date", "condition_order": [...], "conditions": {NAME: {"command", "exit_code", "log",
/// ...}}}. "log" is a path from the folder; without it NAME.log; null: there is none, and none is missed. Some scripts
/// write "args" for "command" and "status" for "exit_code". "ranks" and "launch" are of what $ZS_LAUNCH starts: nothing
/// if the "run_command" does not have it.
Batch read_metadata(const std::string& path) {
  Batch batch;
  try {
    const Json content = read_json<Json>(path);
    const Json& conditions = content.at("conditions");
    std::vector<std::string> order;
    if (content.contains("condition_order")) order = content.at("condition_order").get<std::vector<std::string>>();
    for (const auto& [name, ignored] : conditions.items()) {
      if (std::ranges::find(order, name) == order.end()) order.push_back(name);
    }
    for (const auto& [key, value] : content.items()) {
      if (!value.is_structured() && !value.is_null()) batch.whole[key] = text_of(value);
    }
    const auto run = batch.whole.find("run_command");
    const bool launched = run == batch.whole.end() || run->second.find("ZS_LAUNCH") != std::string::npos;
    if (!launched) batch.whole.erase("ranks");
    for (const std::string& name : order) {
      if (!conditions.contains(name))
        throw Error(path, 0, "condition '" + name + "' is in condition_order, not in conditions");
      Attributes attributes;
      for (const auto& [key, value] : conditions.at(name).items()) {
        if (key == "log" && value.is_null()) batch.silent.push_back(name);
        // The findings of zs-runs about a condition, which no log contains.
        if (key == "found" && value.is_object()) {
          const std::string state = value.contains("state") ? text_of(value["state"]) : "";
          if (state != "MISSING" && state != "CANCELLED") continue;
          attributes["found.state"] = state;
          if (value.contains("basis")) attributes["found.basis"] = text_of(value["basis"]);
          continue;
        }
        const bool command = key == "args" || key == "command";
        if (key == "launch" && !launched) continue;
        if (value.is_null() || (value.is_structured() && !(command && value.is_array()))) continue;
        const std::string text = command ? command_of(value) : text_of(value);
        if (key != "wandb_run" || text != "unknown") attributes[command ? "command" : key] = text;
      }
      const auto status = attributes.find("status");
      const std::string code = status == attributes.end() ? "" : exit_code_of(status->second);
      if (!code.empty()) attributes.emplace("exit_code", code);
      batch.conditions.emplace_back(name, std::move(attributes));
    }
  } catch (const Json::exception& error) {
    std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    what.erase(0, what.find("] ") + 2);
    throw Error(path, 0, what);
  }
  return batch;
}

/// experiment_log.txt, written while the batch runs: "Start time: ...", "Running condition: NAME", "Command: ...",
/// "Condition NAME completed with exit code N".
Batch read_experiment_log(const std::string& path) {
  Batch batch;
  for (const std::string& text : lines_of(Input(path).read_all())) {
    std::string_view line = trimmed(text);
    if (skip(line, "Start time: "))
      batch.whole["batch_start"] = line;
    else if (skip(line, "End time: "))
      batch.whole["batch_end"] = line;
    else if (skip(line, "Running condition: "))
      batch.conditions.push_back({std::string(trimmed(line)), {}});
    else if (skip(line, "Command: ") && !batch.conditions.empty())
      batch.conditions.back().second["command"] = line;
    else if (skip(line, "Condition ")) {
      Attributes* const condition = batch.find(line.substr(0, std::min(line.find(' '), line.size())));
      const std::size_t at = line.find("exit code ");
      if (condition && at != std::string_view::npos) (*condition)["exit_code"] = line.substr(at + 10);
    }
  }
  return batch;
}

/// The options of a command line as attributes of the run: "--zero_stage 1" -> zero_stage=1, "--compile" ->
/// compile=true.
void add_command(const std::string& command, Attributes& attributes) {
  std::vector<std::string> words;
  try {
    words = shell_words(command);
  } catch (const Error&) {
    return;  // a line with an unpaired quote is not a command
  }
  Attributes typed;  // of a repeated option the last wins
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--") || words[i].size() < 3) continue;
    std::string key = words[i].substr(2), value = "true";
    if (const std::size_t equals = key.find('='); equals != std::string::npos) {
      value = key.substr(equals + 1);
      key.resize(equals);
    } else if (i + 1 < words.size() && !words[i + 1].starts_with("--")) {
      value = words[++i];
    }
    std::ranges::replace(key, '-', '_');
    if (key != "set") typed[attribute_named(key)] = value;
  }
  attributes.insert(typed.begin(), typed.end());
}

uid_t owner(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw Error(path, 0, errno_text());
  return status.st_uid;
}

/// Whether `file` may be read because `said`, a file of `folder`, names it. A file of another user may only name files
/// in its folder and files of that user, since it could name files that only the caller may read.
bool may_follow(const std::string& file, const std::string& folder, const std::string& said) {
  const uid_t writer = owner(said);
  const std::string inside = std::filesystem::canonical(folder).string() + "/";
  return writer == ::geteuid() || owner(file) == writer ||
         std::filesystem::canonical(file).string().starts_with(inside);
}

}  // namespace

std::vector<Job> read_directory(const std::string& path) {
  const std::filesystem::path folder(path);
  const std::string metadata = (folder / "metadata.json").string(), log = (folder / "experiment_log.txt").string();
  const bool has_metadata = std::filesystem::exists(metadata), has_log = std::filesystem::exists(log);
  const std::vector<std::string> wandb = wandb_places(path);
  Batch told = has_log ? read_experiment_log(log) : Batch{};
  const Batch batch = has_metadata ? read_metadata(metadata) : told;
  if (batch.conditions.empty()) throw Error(has_metadata ? metadata : log, 0, "names no condition");
  std::vector<Job> jobs;
  for (const auto& [name, known] : batch.conditions) {
    Job job{name, {}, known, true, {}};
    job.attributes.insert(batch.whole.begin(), batch.whole.end());
    job.attributes.insert(told.whole.begin(), told.whole.end());
    const auto fault = [&](const std::string& file, const std::string& what) { job.faults.push_back({file, 0, what}); };
    if (const Attributes* const other = told.find(name); other && other->count("exit_code")) {
      const auto& [key, value] = *job.attributes.emplace("exit_code", other->at("exit_code")).first;
      if (value != other->at(key))
        fault(metadata,
              "exit code of '" + name + "' is " + value + ", and " + other->at(key) + " in experiment_log.txt");
    }
    const auto said = [&](const char* key, const std::string& otherwise) {
      const auto found = job.attributes.find(key);
      return (folder / (found == job.attributes.end() ? otherwise : found->second)).lexically_normal().string();
    };
    const auto follow = [&](const std::string& file) {
      if (!std::filesystem::exists(file)) return false;
      if (may_follow(file, path, has_metadata ? metadata : log)) return true;
      fault(file, "is outside of " + path + ", whose metadata.json another user wrote: name that file yourself");
      return false;
    };
    const std::string expected = said("log", name + ".log"), detailed = (folder / (name + "_detailed.log")).string();
    for (const std::string& file :
         {expected, expected + ".gz", expected + ".zst", detailed, detailed + ".gz", detailed + ".zst"}) {
      if (job.logs.empty() && follow(file)) job.logs.push_back(file);
    }
    const bool silent = std::ranges::find(batch.silent, name) != batch.silent.end();
    if (job.logs.empty() && !silent && job.faults.empty())
      fault(expected, "the log of condition '" + name + "' is missing");
    // The run's own records have every step, and all its digits.
    if (job.attributes.count("run")) job.metrics = metric::file_in(said("run", ""));
    if (!job.metrics.empty() && !follow(job.metrics)) job.metrics.clear();
    for (const std::string& place : wandb) {
      if (may_follow(place, path, has_metadata ? metadata : log)) job.wandb_places.push_back(place);
    }
    if (job.attributes.count("command")) add_command(std::string(job.attributes["command"]), job.attributes);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// The logs of a folder without metadata.json.

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDetailed = "_detailed.log";

/// "x.log", "x.log.gz", "x.log.3", "x.log.3.zst".
bool is_log(std::string name) {
  name = uncompressed_name(name);
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.pop_back();
  if (name.ends_with(".log.")) name.pop_back();
  return name.size() > 4 && name.ends_with(".log");
}

/// The logs of one folder, without those that only say more of another.
std::vector<std::string> logs_of(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::path& entry : entries_of(folder)) {
    if (const std::string name = entry.filename().string(); is_log(name) && is_file(entry)) names.insert(name);
  }
  std::vector<std::string> logs;
  for (const std::string& name : names) {
    const std::string plain = name.substr(0, name.find(kDetailed)) + ".log";
    if (plain == name || name.find(kDetailed) == std::string::npos || !names.contains(plain))
      logs.push_back((folder / name).string());
  }
  return logs;
}

/// "logs_v0.16_run2" -> {"v0.16", "2"}.
std::pair<std::string, std::string> revision_of(const std::string& name) {
  const std::size_t at = name.rfind("_run");
  const bool whole = name.starts_with("logs_") && at != std::string::npos && at > 5 && at + 4 < name.size() &&
                     name.find_first_not_of("0123456789", at + 4) == std::string::npos;
  if (!whole) return {};
  return {name.substr(5, at - 5), name.substr(at + 4)};
}

}  // namespace

std::vector<Job> jobs_in(const std::string& folder) {
  std::vector<Job> jobs;
  if (const std::vector<std::string> logs = logs_of(folder); !logs.empty()) jobs = jobs_of(logs);
  for (Job& job : jobs) {
    const std::size_t at = job.run.rfind("_detailed");
    if (at != std::string::npos && at > 0 && at + 9 == job.run.size()) job.run.resize(at);
  }
  for (const fs::path& part : entries_of(folder)) {
    const auto [revision, run] = revision_of(part.filename().string());
    const std::vector<std::string> logs = revision.empty() ? std::vector<std::string>() : logs_of(part);
    if (logs.empty()) continue;
    for (Job& job : jobs_of(logs)) {
      const std::string label = revision + "_run" + run;
      job.run = logs.size() == 1 ? label : label + "_" + job.run;
      job.attributes["revision"] = revision;
      job.attributes["run"] = run;
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

}  // namespace zs::parse

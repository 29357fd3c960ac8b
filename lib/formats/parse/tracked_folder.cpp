// SPDX-License-Identifier: Apache-2.0
// Finds the runs of trackers in a folder.
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.hpp"
#include "base/host.hpp"
#include "base/protobuf.hpp"
#include "base/secret.hpp"
#include "config/config.hpp"
#include "parse/flat_json.hpp"
#include "parse/mlflow.hpp"
#include "parse/names.hpp"
#include "parse/tracked.hpp"
#include "tracker/datastore.hpp"

namespace zs::parse {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHistory = "wandb-history.jsonl";
constexpr int kDeepestFolder = 8;

std::string file_name(const fs::path& path) { return path.filename().string(); }

bool is_event_file(const std::string& name) { return name.find(".tfevents.") != std::string::npos; }

/// "offline-run-20261120_084212-p1omvm0b" -> "p1omvm0b"; "" for another name.
std::string wandb_id(std::string name) {
  for (const char* const head : {"offline-", "dryrun-", "run-"}) {
    if (name.starts_with(head)) name.erase(0, std::string_view(head).size());
  }
  const std::size_t dash = name.find('-');
  const bool timed = dash == 15 && name[8] == '_';
  return timed ? name.substr(dash + 1) : "";
}

/// The files of the W&B run in a folder: run-ID.wandb, or the history of W&B before 0.10.
std::vector<std::string> wandb_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const fs::path& path : entries_of(folder)) {
    if (file_name(path).ends_with(".wandb")) files.push_back(path.string());
  }
  for (const fs::path& path : {folder / kHistory, folder / "files" / kHistory}) {
    if (files.empty() && is_file(path)) files.push_back(path.string());
  }
  return files;
}

/// Reads the files next to a separate history: the configuration and the summary, which a .wandb file contains.
void read_beside(const fs::path& history, Job& job) {
  const auto add = [&](const std::string& prefix, const std::string& key, std::string_view value) {
    const bool internal = key.starts_with("_wandb") || key == "wandb_version" || value.empty() || value == "None";
    if (internal || names_secret(key)) return;
    if (const std::string name = attribute_named(key); !name.empty())
      job.attributes.emplace(prefix + (prefix.empty() ? name : key), attribute_value(value));
  };
  const fs::path folder = history.parent_path();
  for (const fs::path& place : {folder, folder / "files"}) {
    const std::string configuration = (place / "config.yaml").string(),
                      summary = (place / "wandb-summary.json").string();
    try {
      if (is_file(configuration)) {
        const auto told = config::Config::parse(Input(configuration).read_all(), configuration);
        for (config::Entry entry : told.entries()) {
          // Each value is under "value", and in old files its description under "desc".
          const std::size_t at = entry.key.find(".value");
          if (at != std::string::npos) add("", entry.key.erase(at, 6), entry.value);
        }
      }
      if (!is_file(summary)) continue;
      const std::string text = Input(summary).read_all();
      FlatJson json;
      if (!json.read(text)) job.faults.push_back({summary, 0, "is not JSON: " + json.fault()});
      for (const Field& field : json.fields()) add("wandb.summary.", std::string(field.key), field.value);
    } catch (const Error& failure) {
      job.faults.push_back({"", 0, failure.what()});  // which leads with its place
    }
  }
}

Job wandb_job(const std::string& id, std::vector<std::string> files) {
  Job job{id, std::move(files), {{"wandb_run", id}}};
  job.source = source_of(job.logs.front());
  if (job.source == Source::log) read_beside(job.logs.front(), job);
  return job;
}

/// The name that people gave a run of W&B, of the run's record near the beginning of its file; "" if there is none.
std::string given_name(const std::string& path) {
  constexpr std::size_t kEnough = 1 << 20;
  Input input(path);
  std::string bytes(kEnough, '\0');
  bytes.resize(input.read(bytes.data(), bytes.size()));
  std::string name;
  const auto use = [&](std::string_view bytes_of, std::int64_t) {
    try {
      const tracker::WandbRecord record = tracker::wandb_record(bytes_of);
      if (record.kind == tracker::WandbRecord::Kind::run && name.empty()) name = record.name;
    } catch (const protozero::exception&) {  // the reader of the whole file says so
    }
  };
  try {
    tracker::read_datastore(bytes, path, use, [](const Fault&) {});
  } catch (const Error&) {
  }
  return as_word(name);
}

/// Whether a folder is what add_hparams() of a SummaryWriter makes below a run: named by the time, it has the settings
/// and the results of that run, and is none itself.
bool holds_hparams(const fs::path& folder, const std::vector<std::string>& logs) {
  constexpr std::size_t kLargest = 1 << 20;
  const std::string name = file_name(folder);
  if (logs.size() != 1 || name.find_first_not_of("0123456789.") != std::string::npos) return false;
  std::error_code error;
  if (fs::file_size(logs[0], error) > kLargest || error) return false;
  return Input(logs[0]).read_all().find("_hparams_/session_start_info") != std::string::npos;
}

/// The runs of TensorBoard in a folder and those below it, the folder's own first.
void find_events(const fs::path& folder, const std::string& name, int depth, std::vector<Job>& jobs,
                 bool below_run = false) {
  const std::vector<fs::path> paths = entries_of(folder);
  Job job{as_word(name), {}, {}};
  job.source = Source::tensorboard;
  for (const fs::path& path : paths) {
    if (is_event_file(file_name(path))) job.logs.push_back(path.string());
  }
  const bool run = !job.logs.empty();
  if (run && !(below_run && holds_hparams(folder, job.logs))) jobs.push_back(std::move(job));
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::is_symlink(path, error) || !is_folder(path) || depth >= kDeepestFolder) continue;
    find_events(path, (depth == 0 ? "" : name + "_") + file_name(path), depth + 1, jobs, run);
  }
}

}  // namespace

Source source_of(const std::string& path) {
  const std::string name = file_name(path);
  if (is_event_file(name)) return Source::tensorboard;
  if (name.ends_with(".wandb")) return Source::wandb;
  return is_mlflow_store(path) ? Source::mlflow : Source::log;
}

void name_as_given(std::vector<Job>& jobs) {
  std::map<std::string, int> times;
  std::vector<std::string> names;
  for (const Job& job : jobs) {
    const std::string given = job.source == Source::wandb ? given_name(job.logs.front()) : "";
    ++times[names.emplace_back(given.empty() ? job.run : given)];
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (times[names[i]] == 1) jobs[i].run = names[i];
  }
}

std::vector<Job> tracked_jobs(const std::string& folder) {
  std::error_code error;
  const fs::path place = is_folder(fs::path(folder) / "wandb") ? fs::path(folder) / "wandb" : fs::path(folder);
  std::vector<Job> jobs;
  const fs::path whole = fs::canonical(folder, error);
  if (const std::string id = wandb_id(file_name(whole)); !id.empty()) {
    if (auto files = wandb_in(folder); !files.empty()) {
      std::vector<Job> one = {wandb_job(id, std::move(files))};
      name_as_given(one);
      return one;
    }
  }
  for (const fs::path& path : entries_of(place)) {
    const std::string id = fs::is_symlink(path, error) ? "" : wandb_id(file_name(path));
    if (id.empty()) continue;
    const auto files = wandb_in(path);
    if (files.empty()) continue;
    const auto known = std::ranges::find(jobs, id, &Job::run);
    if (known != jobs.end())  // it was continued
      known->logs.insert(known->logs.end(), files.begin(), files.end());
    else
      jobs.push_back(wandb_job(id, files));
  }
  name_as_given(jobs);
  if (jobs.empty()) jobs = mlflow_jobs(folder);
  if (jobs.empty()) find_events(folder, file_name(whole), 0, jobs);
  return jobs;
}

std::vector<std::string> wandb_places(const std::string& folder) {
  std::vector<std::string> places;
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  std::vector<fs::path> candidates = {whole / "wandb", whole.parent_path() / "wandb",
                                      whole.parent_path().parent_path() / "wandb"};
  if (const std::string wandb_dir = environment_variable("WANDB_DIR"); !wandb_dir.empty())
    candidates.push_back(fs::path(wandb_dir) / "wandb");
  for (const fs::path& path : candidates) {
    const std::string text = path.string();
    const bool known = std::ranges::find(places, text) != places.end();
    if (!known && is_folder(path)) places.push_back(text);
  }
  return places;
}

std::vector<std::string> wandb_files(const std::vector<std::string>& places, const std::string& id) {
  std::vector<std::string> files;
  for (const std::string& place : places) {
    for (const fs::path& path : entries_of(place)) {
      std::error_code error;
      if (fs::is_symlink(path, error) || wandb_id(file_name(path)) != id) continue;
      for (std::string& file : wandb_in(path)) files.push_back(std::move(file));
    }
    if (!files.empty()) break;
  }
  return files;
}

}  // namespace zs::parse

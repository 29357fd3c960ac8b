// SPDX-License-Identifier: Apache-2.0
#include "summary/source.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "metric/file.hpp"
#include "parse/run.hpp"
#include "parse/tracked.hpp"
#include "registry/query.hpp"
#include "stat/summary.hpp"
#include "summary/condition.hpp"

namespace zs::summary {
namespace {

namespace fs = std::filesystem;

/// Something to read: a metric file, or the logs of a run.
struct Input {
  std::string name;
  std::string metrics{};
  parse::Job job{};
  bool found = false;  ///< by its name, in a folder that nobody described: it may be no training's log
};

/// Whether a file without a description may be a log, beside the *.log that parse::jobs_in() takes.
bool looks_like_log(const fs::path& path) {
  static const std::set<std::string> kEndings = {".out", ".txt", ".jsonl", ".json", ".csv", ".h5", ".tsv"};
  std::string name = path.filename().string();
  if (name.starts_with(".") || name == "summary.h5" || name.ends_with("_numbers.tsv"))
    return false;                                                 // what zs itself puts beside logs
  if (name == "runs.csv" || name == "zs-runs.csv") return false;  // tables of runs, of zs or of others
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  const fs::path plain = name;
  const std::string rotation = plain.extension().string();
  const bool rotated = rotation.size() > 1 && std::all_of(rotation.begin() + 1, rotation.end(), ::isdigit);
  return kEndings.count((rotated ? plain.stem() : plain).extension().string()) > 0;
}

void add_jobs(std::vector<parse::Job> jobs, bool found, std::vector<Input>& inputs) {
  for (parse::Job& job : jobs) {
    const std::string run = job.run;
    inputs.push_back({run, "", std::move(job), found});
  }
}

void add_logs(const std::vector<std::string>& paths, std::vector<Input>& inputs) {
  add_jobs(parse::jobs_of(paths, ""), false, inputs);
}

void add_folder(const std::string& folder, std::vector<Input>& inputs) {
  const fs::path path(folder);
  const auto has = [](const fs::path& file) { return fs::exists(file); };
  if (has(path / "metadata.json") || has(path / "experiment_log.txt")) return add_logs({folder}, inputs);
  if (has(path / "metrics.h5")) return inputs.push_back({folder, (path / "metrics.h5").string(), {}});
  std::vector<std::string> runs, logs;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.is_directory() && has(entry.path() / "metrics.h5")) runs.push_back(entry.path().string());
    if (entry.is_regular_file() && looks_like_log(entry.path())) logs.push_back(entry.path().string());
  }
  std::sort(runs.begin(), runs.end());
  std::sort(logs.begin(), logs.end());
  if (!runs.empty()) {
    for (const std::string& run : runs) add_folder(run, inputs);
    return;
  }
  std::vector<parse::Job> jobs = parse::jobs_in(folder);
  if (jobs.empty() && logs.empty()) jobs = parse::tracked_jobs(folder);
  if (jobs.empty() && logs.empty())
    throw Error(folder, 0, "holds neither runs nor logs, and no runs of W&B or TensorBoard");
  add_jobs(std::move(jobs), true, inputs);
  const auto metrics =
      std::stable_partition(logs.begin(), logs.end(), [](const auto& log) { return !metric::holds_metrics(log); });
  for (auto one = metrics; one != logs.end(); ++one) inputs.push_back({*one, *one, {}});
  logs.erase(metrics, logs.end());
  if (!logs.empty()) add_jobs(parse::jobs_of(logs, ""), true, inputs);
}

void add(const std::string& operand, const std::string& registry, std::vector<Input>& inputs,
         std::vector<std::string>& logs) {
  if (operand == "-") return inputs.push_back({"stdin", "-", {}});
  if (fs::is_directory(operand)) return add_folder(operand, inputs);
  if (!fs::exists(operand)) return add_folder(registry::run_folder(operand, registry), inputs);
  const fs::path path(operand), beside = path.parent_path() / "metrics.h5";
  if (path.filename() == "run.log" && fs::exists(beside)) return inputs.push_back({operand, beside.string(), {}});
  // Of a pipe the first bytes cannot be looked at and read again: it has records.
  if (fs::is_regular_file(operand) && !metric::holds_metrics(operand)) return logs.push_back(operand);
  inputs.push_back({operand, operand, {}});
}

/// Runs of zs-train are called by their ids: their names say more, where each has its own.
void rename(metric::Store& store) {
  std::map<std::string, std::size_t> count;
  for (const metric::Run& run : store.runs) ++count[run.attribute("run_name")];
  for (metric::Run& run : store.runs) {
    const std::string name = run.attribute("run_name");
    if (!name.empty() && count[name] == 1 && run.name == run.attribute("run_id")) run.name = name;
  }
}

/// A log that somebody named has a metric line; a condition of a batch may have failed before its first. Nothing, and a
/// fault, where only the file's name spoke for a log.
std::optional<metric::Run> parsed(const Input& input, const FaultSink& faults) {
  parse::Job job = input.job;
  job.of_directory = job.of_directory || input.found;
  std::size_t told = 0;
  const FaultSink counted = [&](const Fault& fault) { ++told, faults(fault); };
  std::vector<parse::Count> counts;
  metric::Store store = parse::collect({job}, {}, counted, &counts);
  const parse::Stats& stats = counts.front().stats;
  if (input.job.of_directory || stats.records > 0) return std::move(store.runs.front());
  const std::string what = stats.lines == 0 ? "is empty, expected records or a log"
                                            : "holds no records, and no metric line of a log that zs-parse reads";
  if (!input.found) throw Error(job.logs.front(), 0, what);
  if (told == 0) faults({job.logs.front(), 0, what});
  return {};
}

}  // namespace

metric::Store read(const std::vector<std::string>& operands, const std::string& registry, const Listener& listener,
                   const std::string& by) {
  std::vector<Input> inputs;
  std::vector<std::string> logs;
  for (const std::string& operand : operands) add(operand, registry, inputs, logs);
  if (!logs.empty()) add_logs(logs, inputs);
  metric::Store store;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (listener.progress) listener.progress(i, inputs.size(), inputs[i].name);
    if (inputs[i].metrics.empty()) {
      if (auto run = parsed(inputs[i], listener.fault)) store.runs.push_back(*std::move(run));
      continue;
    }
    metric::Store one = metric::read(inputs[i].metrics);
    if (inputs.size() == 1)
      store = std::move(one);
    else
      std::move(one.runs.begin(), one.runs.end(), std::back_inserter(store.runs));
  }
  if (listener.progress) listener.progress(inputs.size(), inputs.size(), "");
  if (store.summary) {
    mark_timed(store);
    return store;
  }
  if (store.runs.empty()) throw Error(operands.front(), 0, "holds no run with a metric line");
  rename(store);
  std::set<std::string> names;
  for (const metric::Run& run : store.runs) {
    if (!names.insert(run.name).second) throw Error("two runs '" + run.name + "': give one of them alone");
  }
  stat::SummaryRule rule;
  const auto has = [&](const metric::Run& run) { return !run.attribute(by).empty(); };
  if (!by.empty() && std::ranges::all_of(store.runs, has)) rule.by = {by};
  stat::Summary made = stat::summarize(std::move(store), rule);
  if (listener.warn) std::for_each(made.warnings.begin(), made.warnings.end(), listener.warn);
  return std::move(made.store);
}

}  // namespace zs::summary

// SPDX-License-Identifier: Apache-2.0
#include "input/source.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/folder.hpp"
#include "metric/file.hpp"
#include "parse/tracked.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"

namespace zs::input {
namespace {

namespace fs = std::filesystem;

/// The name in a run's record, which its user may have set after the training; nothing if it has only its id.
std::map<std::string, std::string> name_in_record(const std::string& folder) {
  const fs::path path = fs::weakly_canonical(folder);
  if (!registry::registered(path.parent_path().string(), path.filename().string())) return {};
  try {
    const std::string name = registry::value(registry::read_record(path.string()), "run_name");
    if (!name.empty() && name != path.filename()) return {{"run_name", name}};
  } catch (const Error&) {  // a damaged record: zs-runs reports it
  }
  return {};
}

/// The sources so far, each with the operand that it is of.
struct Found {
  std::vector<std::pair<std::size_t, Source>> entries{};
  std::size_t operand = 0;

  void add_records(const std::string& name, const std::string& path) {
    entries.push_back({operand, {name, path, {}, operand}});
  }
  void add_jobs(std::vector<parse::Job> jobs, bool by_name) {
    for (parse::Job& job : jobs) {
      const std::string run = job.run;
      entries.push_back({operand, {run, "", std::move(job), operand, by_name}});
    }
  }
  void add_run(const std::string& folder) {
    const auto named = name_in_record(folder);
    if (const std::string metrics = metric::file_in(folder); !metrics.empty()) {
      add_records(folder, metrics);
      entries.back().second.job.attributes = named;
      return;
    }
    std::vector<parse::Job> jobs = parse::jobs_in(folder);
    for (parse::Job& job : jobs) job.attributes.insert(named.begin(), named.end());
    if (jobs.empty()) throw Error(folder, 0, "is the folder of a run without metrics.h5 and without a log so far");
    add_jobs(std::move(jobs), false);
  }
  void add_logs(const std::string& folder) {
    add_jobs(parse::jobs_in(folder), true);
    std::vector<std::string> logs;
    for (const std::string& file : like_logs(folder)) {
      const Kind kind = kinds_of(file).front();
      if (kind == Kind::records || kind == Kind::hdf5)
        add_records(file, file);
      else
        logs.push_back(file);
    }
    add_jobs(parse::jobs_of(logs), true);
  }
  void add_registry(const std::string& folder) {
    for (const fs::path& run : entries_of(folder)) {
      if (!metric::file_in(run.string()).empty()) add_run(run.string());
    }
  }
};

/// A named log must have a metric line; a condition of a batch may have failed before its first. Returns nothing, and a
/// fault, if only the file's name suggested a log.
std::optional<metric::Run> parsed(const Source& source, const FaultSink& faults) {
  parse::Job job = source.job;
  job.of_directory = job.of_directory || source.found;
  std::size_t told = 0;
  const FaultSink counted = [&](const Fault& fault) { ++told, faults(fault); };
  std::vector<parse::Count> counts;
  metric::Store store = parse::collect({job}, {}, counted, &counts);
  const parse::Stats& stats = counts.front().stats;
  const bool fell = !store.runs.front().attribute("error").empty();
  if (source.job.of_directory || stats.records > 0 || fell) return std::move(store.runs.front());
  const std::string what = stats.lines == 0 ? "is empty, expected records or a log"
                                            : "holds no records, and no metric line of a log that zs-parse reads";
  if (!source.found) throw Error(job.logs.front(), 0, what);
  if (told == 0) faults({job.logs.front(), 0, what});
  return {};
}

/// A run's name and attributes, which belong to an operand.
struct Label {
  std::size_t operand;
  std::string* name;
  std::map<std::string, std::string>* attributes;
};

/// If several operands have a run of one name (the batches of two weeks), puts the operand's name in front of each
/// run's name. Returns whether it did.
bool tell_apart(const std::vector<Named>& named, const std::vector<Label>& labels) {
  std::map<std::string, std::set<std::size_t>> holders;
  for (const Label& label : labels) {
    holders[*label.name].insert(label.operand);
    if (const auto original = label.attributes->find("repetition_of"); original != label.attributes->end())
      holders[original->second].insert(label.operand);
  }
  if (std::ranges::all_of(holders, [](const auto& one) { return one.second.size() == 1; })) return false;
  // The folder's name if all differ, else its path; two files of one folder by their own.
  std::vector<std::string> short_names, paths, files;
  for (const Named& one : named) {
    const fs::path folder = fs::is_directory(one.path) ? fs::path(one.path) / "" : fs::path(one.path);
    paths.push_back(folder.parent_path().string());
    short_names.push_back(fs::weakly_canonical(folder.parent_path()).filename().string());
    files.push_back(one.path);
  }
  const auto differ = [](const std::vector<std::string>& names) {
    return std::set(names.begin(), names.end()).size() == names.size();
  };
  if (!differ(files)) return false;  // one file twice: a mistake
  const std::vector<std::string>& prefixes = differ(short_names) ? short_names : differ(paths) ? paths : files;
  for (const Label& label : labels) {
    const std::string prefix = prefixes[label.operand] + "/";
    *label.name = prefix + *label.name;
    for (const char* const key : {"run_name", "repetition_of"}) {
      if (const auto entry = label.attributes->find(key); entry != label.attributes->end())
        entry->second = prefix + entry->second;
    }
  }
  return true;
}

bool is_log(const Named& one) {
  return one.kind == Kind::text || one.kind == Kind::tracked || one.kind == Kind::empty || one.kind == Kind::stream;
}

}  // namespace

std::vector<Source> sources(const std::vector<Named>& named, Prefer prefer) {
  Found found;
  std::vector<std::string> logs;
  for (const Named& one : named) {
    const fs::path path(one.path), beside = path.parent_path() / "metrics.h5";
    const std::size_t before = found.entries.size() + logs.size();
    switch (one.kind) {
      case Kind::results:
        found.add_jobs(parse::read_directory(one.path), false);
        break;
      case Kind::run:
        found.add_run(one.path);
        break;
      case Kind::registry:
        found.add_registry(one.path);
        break;
      case Kind::trackers:
        found.add_jobs(parse::tracked_jobs(one.path), true);
        break;
      case Kind::logs:
        found.add_logs(one.path);
        break;
      default:
        if (!is_log(one) || (one.kind == Kind::stream && prefer == Prefer::records))
          found.add_records(one.path == "-" ? "stdin" : one.path, one.path);
        else if (prefer == Prefer::records && path.filename() == "run.log" && is_there(beside.string()))
          found.add_records(one.path, beside.string());
        else
          logs.push_back(one.path);
    }
    if (found.entries.size() + logs.size() == before)
      throw Error(one.path, 0, "holds no run and no log any more: it was changed while it was read");
    ++found.operand;
  }
  // The parts of a log are one run, at the position of the first.
  for (parse::Job& job : parse::jobs_of(logs)) {
    const auto has = [&](const Named& one) { return std::ranges::find(job.logs, one.path) != job.logs.end(); };
    found.operand = static_cast<std::size_t>(std::ranges::find_if(named, has) - named.begin());
    std::vector<parse::Job> one;
    one.push_back(std::move(job));
    found.add_jobs(std::move(one), false);
  }
  std::ranges::stable_sort(found.entries, {}, [](const auto& each) { return each.first; });
  std::vector<Source> sources;
  for (auto& [operand, source] : found.entries) sources.push_back(std::move(source));
  return sources;
}

std::vector<parse::Job> jobs(const std::vector<Named>& named, const std::string& name) {
  if (!name.empty() && std::ranges::all_of(named, is_log)) return {parse::job_of(paths(named), name)};
  std::vector<parse::Job> jobs;
  std::vector<std::size_t> operands;
  for (Source& source : sources(named, Prefer::logs)) {
    const std::string folder = fs::path(source.metrics).parent_path().string();
    if (source.metrics.empty()) {
      jobs.push_back(std::move(source.job));
    } else if (source.name == folder) {  // a run: named after its folder
      jobs.push_back({fs::canonical(folder).filename().string(), {}, source.job.attributes, false, {}, source.metrics});
    } else {
      for (metric::Run& run : metric::read(source.metrics).runs) {
        parse::Job& job = jobs.emplace_back(parse::Job{run.name, {}, {}});
        job.records = std::make_shared<const metric::Run>(std::move(run));
      }
    }
    operands.resize(jobs.size(), source.operand);
  }
  if (!name.empty() && jobs.size() != 1)
    throw Error("--run " + name + " names one run, and here are " + std::to_string(jobs.size()));
  if (!name.empty()) jobs.front().run = name;
  std::vector<Label> labels;
  for (std::size_t i = 0; i < jobs.size(); ++i) labels.push_back({operands[i], &jobs[i].run, &jobs[i].attributes});
  tell_apart(named, labels);
  std::set<std::string> names;
  for (const parse::Job& job : jobs) {
    if (!names.insert(job.run).second) throw Error("two runs '" + job.run + "'; parse them apart, with --run NAME");
  }
  return jobs;
}

metric::Store read(const std::vector<Named>& named, const Listener& listener) {
  const std::vector<Source> inputs = sources(named);
  std::vector<metric::Store> parts(inputs.size());
  std::vector<Label> labels;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (listener.progress) listener.progress(i, inputs.size(), inputs[i].name);
    metric::Store& one = parts[i];
    if (!inputs[i].metrics.empty()) {
      one = metric::read(inputs[i].metrics);
      for (metric::Run& run : one.runs) {
        for (const auto& [key, value] : inputs[i].job.attributes) {
          if (run.name == run.attribute(key)) run.name = value;  // zs-record calls its records by the name
          run.attributes[key] = value;
        }
      }
    } else if (auto run = parsed(inputs[i], listener.fault)) {
      one.runs.push_back(*std::move(run));
    }
    for (metric::Run& run : one.runs) labels.push_back({inputs[i].operand, &run.name, &run.attributes});
  }
  if (tell_apart(named, labels)) {  // no summary has these names
    for (metric::Store& one : parts) one.summary.reset(), one.curves.clear(), one.tables.clear();
  }
  metric::Store store;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    metric::join(store, std::move(parts[i]), inputs[i].metrics == "-" ? "stdin" : inputs[i].name);
  if (listener.progress) listener.progress(inputs.size(), inputs.size(), "");
  return store;
}

}  // namespace zs::input

// SPDX-License-Identifier: Apache-2.0
// The logs of a folder without metadata.json.
#include <filesystem>
#include <set>

#include "base/folder.hpp"
#include "parse/run.hpp"

namespace zs::parse {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDetailed = "_detailed.log";

/// "x.log", "x.log.gz", "x.log.3", "x.log.3.gz".
bool is_log(std::string name) {
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
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

// SPDX-License-Identifier: Apache-2.0
#include "experiment/rerun.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/process.hpp"
#include "base/words.hpp"
#include "config/share.hpp"
#include "experiment/state.hpp"
#include "registry/query.hpp"
#include "registry/record.hpp"

namespace zs::experiment {
namespace {

namespace fs = std::filesystem;
using registry::value;

bool found_out(std::string_view filter) {
  const std::string_view column = filter.substr(0, filter.find_first_of("!=<>~"));
  return std::ranges::find(kFoundOut, column) != kFoundOut.end();
}

const std::string kOthersWords = ": its commands would run as you (--any_owner runs them)";

std::string belongs(uid_t owner) {
  const passwd* const user = ::getpwuid(owner);
  return "belongs to " + (user ? std::string(user->pw_name) : "user " + std::to_string(owner)) + kOthersWords;
}

/// Why not all of these are there and belong to the caller alone; "" if they do.
std::string of_another(const std::vector<std::string>& paths, const std::set<uid_t>& record) {
  for (const std::string& path : paths) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return path + ": " + errno_text();
    if (S_ISLNK(status.st_mode)) return path + " is a link" + kOthersWords;
    if (status.st_uid != ::geteuid()) return path + " " + belongs(status.st_uid);
  }
  for (const uid_t owner : record) {
    if (owner != ::geteuid()) return "a part of its record " + belongs(owner);
  }
  return "";
}

/// This installation's script with the name of `planned`; "" if it has none.
std::string own_script(const std::string& planned) {
  static constexpr std::array kScripts = {"batch.sbatch", "sweep.sbatch", "train.sbatch"};
  const std::string name = fs::path(planned).filename().string();
  if (std::ranges::find(kScripts, name) == kScripts.end()) return "";
  const fs::path share = fs::path(config::share_path("conditions")).parent_path();
  // Installed, and in the source tree.
  for (const fs::path& folder : {share / "slurm", share.parent_path() / "slurm"}) {
    if (fs::is_regular_file(folder / name)) return fs::canonical(folder / name).string();
  }
  throw Error((share / "slurm" / name).string(), 0, "is not there: this installation is not whole");
}

}  // namespace

bool asks_for_states(const registry::Question& question, const registry::Runs& runs) {
  const auto asks = [&](const std::string& word) {
    const std::string column = word.substr(0, word.find_first_of("!=<>~"));
    return found_out(column) && runs.find(column) == nullptr;
  };
  return asks(question.sort_by) || std::ranges::any_of(question.show, asks) ||
         std::ranges::any_of(question.filters, asks);
}

std::vector<std::size_t> find_states(const std::string& registry, registry::Question& question, registry::Runs& runs,
                                     const ProgressOf& progress_of_run) {
  registry::Question first;
  first.sweep = question.sweep;
  // With "or" a run may pass by its state alone.
  for (const std::string& filter : question.filters) {
    if (!question.any && !found_out(filter)) first.filters.push_back(filter);
  }
  add_states(registry, registry::ask(runs, first).rows, runs, progress_of_run);
  if (question.show.empty()) {
    for (const char* const name :
         {"run_id", "run_name", "sweep_name", "state", "steps", "restarts", "slurm_job", "nodes", "basis"}) {
      const registry::Column* const column = runs.find(name);
      if (column && column->values.size() > 1) question.show.push_back(name);
    }
  }
  return registry::ask(runs, question).rows;
}

std::vector<std::size_t> find_states(const std::string& registry, registry::Question&& question, registry::Runs& runs) {
  return find_states(registry, question, runs);
}

std::vector<std::string> Rerun::command(bool local) const {
  const bool many = !experiment.empty();
  std::vector<std::string> words = {"bash", script, many ? "--rerun" : "--resume", many ? experiment : runs.front(),
                                    local ? "--local" : "--as_before"};
  if (many) words.insert(words.end(), {"--cells", "-"});
  if (any_owner) words.emplace_back("--any_owner");
  return words;
}

std::vector<Rerun> to_rerun(const std::string& registry, const registry::Runs& runs,
                            const std::vector<std::size_t>& rows, const Choice& choice, const FaultSink& faults) {
  std::vector<Rerun> jobs;
  for (const std::size_t row : rows) {
    const std::string &id = runs.text(row, "run_id"), &state = runs.text(row, "state");
    constexpr std::array kAgain = {RunState::failed, RunState::truncated, RunState::missing, RunState::preempted,
                                   RunState::cancelled};
    if (std::ranges::none_of(kAgain, [&](RunState again) { return state == name(again); })) {
      if (choice.strict) faults({id, 0, "is " + state + ", so it is not run again"});
      continue;
    }
    const std::string folder = fs::absolute(registry + "/" + id).lexically_normal().string();
    // Reads the record itself: the table may be another user's index.
    const registry::Record record = registry::record_of(folder);
    const std::string planned = value(record.fields, "script"), experiment = value(record.fields, "experiment");
    if (planned.empty()) {
      const std::string command = value(record.fields, "command");
      const bool by_zs =
          command.starts_with("zs-train") || command.find("/zs-train ") != std::string::npos || command.empty();
      faults({id, 0,
              by_zs ? "no script has planned it: zs-train --resume " + id + " continues it if it has a checkpoint"
                    : "no script has planned it; it was started as: " + command});
      continue;
    }
    std::vector<std::string> paths = {folder, folder + "/record"};
    // A command without options has no configuration.
    if (const std::string config = folder + "/config.yaml"; fs::exists(fs::symlink_status(config)))
      paths.push_back(config);
    if (!experiment.empty()) paths.insert(paths.end(), {experiment, experiment + "/metadata.json"});
    const std::string script = own_script(planned);
    if (script.empty()) {
      faults({id, 0, "was planned by " + planned + ", which is not a script of zs: it is not run"});
      continue;
    }
    const std::string other = choice.any_owner ? "" : of_another(paths, record.owners);
    if (!other.empty()) {
      faults({id, 0, other});
      continue;
    }
    auto job = std::ranges::find_if(jobs, [&](const Rerun& each) {
      return !experiment.empty() && each.experiment == experiment && each.script == script;
    });
    if (job == jobs.end()) {
      jobs.push_back({script, value(record.fields, "directory"), experiment, {}, {}, choice.any_owner});
      job = jobs.end() - 1;
    }
    job->conditions.push_back(value(record.fields, "condition"));
    job->runs.push_back(folder);
  }
  return jobs;
}

void require_own(const std::string& folder) {
  std::vector<std::string> paths = {folder};
  for (const char* const name : {"/metadata.json", "/frozen.sha256", "/.cells", "/.cells/settings", "/.lock", "/record",
                                 "/config.yaml", "/settings"}) {
    if (fs::exists(fs::symlink_status(folder + name))) paths.push_back(folder + name);
  }
  const std::string other = of_another(paths, registry::record_of(folder).owners);
  if (!other.empty()) throw Error(other);
}

std::string rerun_command(const std::string& folder) { return shell_quoted({"zs-runs", "rerun", folder}); }

int rerun(const Rerun& job, const std::vector<std::string>& command) {
  if (!job.directory.empty() && !fs::is_directory(job.directory))
    throw Error(job.directory, 0, "the folder that this was planned in is gone");
  Program program{command};
  program.folder = job.directory;
  program.input = [&](std::FILE* stream) {
    for (const std::string& condition : job.conditions) std::fprintf(stream, "%s\n", condition.c_str());
  };
  return run(program).status;
}

}  // namespace zs::experiment

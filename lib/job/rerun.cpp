// SPDX-License-Identifier: Apache-2.0
#include "job/rerun.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include "base/file.hpp"
#include "job/state.hpp"
#include "registry/query.hpp"

namespace zs::job {
namespace {

constexpr std::array<std::string_view, 5> kComputed = {"state", "steps", "slurm_job", "nodes", "basis"};

bool computed(const std::string& filter) {
  const std::string_view column = std::string_view(filter).substr(0, filter.find_first_of("!=<>~"));
  return std::find(kComputed.begin(), kComputed.end(), column) != kComputed.end();
}

}  // namespace

std::vector<std::size_t> find_states(const std::string& registry, registry::Question& question, registry::Runs& runs) {
  registry::Question first;
  first.sweep = question.sweep;
  // With "or" a run may pass by its state alone.
  for (const std::string& filter : question.filters) {
    if (!question.any && !computed(filter)) first.filters.push_back(filter);
  }
  add_states(registry, registry::ask(runs, first).rows, runs);
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

std::vector<Rerun> to_rerun(const std::string& registry, const registry::Runs& runs,
                            const std::vector<std::size_t>& rows, bool strict, const FaultSink& faults) {
  std::vector<Rerun> jobs;
  for (const std::size_t row : rows) {
    const std::string& id = runs.text(row, "run_id");
    const std::string &state = runs.text(row, "state"), &script = runs.text(row, "script");
    if (state != name(Fate::failed) && state != name(Fate::missing) && state != name(Fate::preempted)) {
      if (strict) faults({id, 0, "is " + state + ", so it is not run again"});
      continue;
    }
    if (script.empty()) {
      faults({id, 0, "no script has planned it: zs-train --resume " + id + " goes on with it if it has a checkpoint"});
      continue;
    }
    const std::string& experiment = runs.text(row, "experiment");
    auto job = std::find_if(jobs.begin(), jobs.end(), [&](const Rerun& each) {
      return !experiment.empty() && each.experiment == experiment && each.script == script;
    });
    if (job == jobs.end()) {
      jobs.push_back({script, runs.text(row, "directory"), experiment, {}, {}});
      job = jobs.end() - 1;
    }
    job->conditions.push_back(runs.text(row, "condition"));
    job->runs.push_back(std::filesystem::absolute(registry + "/" + id).lexically_normal().string());
  }
  return jobs;
}

int rerun(const Rerun& job, bool local) {
  const bool many = !job.experiment.empty();
  std::vector<std::string> words = {"bash", job.script, many ? "--rerun" : "--resume",
                                    many ? job.experiment : job.runs.front(), local ? "--local" : "--as_before"};
  if (many) words.insert(words.end(), {"--cells", "-"});
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) throw Error("pipe: " + errno_text());
  std::signal(SIGPIPE, SIG_IGN);  // a script that refuses does not read
  const pid_t child = ::fork();
  if (child < 0) throw Error("fork: " + errno_text());
  if (child == 0) {
    ::dup2(pipe[0], STDIN_FILENO);
    ::close(pipe[0]);
    ::close(pipe[1]);
    std::signal(SIGPIPE, SIG_DFL);
    if (!job.directory.empty() && ::chdir(job.directory.c_str()) != 0) ::_exit(126);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(pipe[0]);
  std::string names;
  for (const std::string& condition : job.conditions) names += condition + "\n";
  std::size_t written = 0;
  while (written < names.size()) {
    const ssize_t count = ::write(pipe[1], names.data() + written, names.size() - written);
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  ::close(pipe[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace zs::job

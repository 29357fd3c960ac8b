// SPDX-License-Identifier: Apache-2.0
// The files that must not change between the planning of a training and its start.
#include "experiment/start.hpp"

#include <fcntl.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/process.hpp"
#include "base/secret.hpp"
#include "base/words.hpp"
#include "cli/run.hpp"
#include "experiment/foreign.hpp"
#include "experiment/plan.hpp"
#include "parse/step_line.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"

extern char** environ;
namespace zs::experiment {
namespace {

namespace fs = std::filesystem;
using registry::value;

/// Variables that affect a training's run, as NAME=VALUE lines. Only names that are known to be harmless: others may be
/// secrets (SLURM_JWT is one), and everybody may read the log.
std::string harmless_environment() {
  static const RE2 kHarmless(
      "SLURM_(CLUSTER_NAME|JOB_(ID|NAME|PARTITION|QOS|NODELIST|NUM_NODES|CPUS_PER_NODE|GPUS)|ARRAY_(JOB_ID|TASK_ID)|"
      "NTASKS.*|NPROCS|NNODES|TASKS_.*|CPUS_.*|GPUS_.*|MEM_PER_.*|(CPU|MEM|GPU)_BIND|NODELIST|RESTART_COUNT|MPI_TYPE|"
      "DISTRIBUTION|SUBMIT_(DIR|HOST))|(OMP|KMP|MKL|OPENBLAS|NCCL)_.*|OMPI_MCA_(btl|pml|mtl|osc|coll|rmaps).*|"
      "CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|LAUNCH_BLOCKING|MODULE_LOADING|HOME)|CUBLAS_WORKSPACE_CONFIG|"
      "ZS_(RANKS|MPI|RUN|REGISTRY|CONDITIONS|SHARE|SANDBOX)");
  // Leaves out variables whose names say that they hold a secret.
  static const RE2 kSecret("(?i)JWT|TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH");
  std::vector<std::string> lines;
  for (char** entry = environ; *entry; ++entry) {
    const std::string line = *entry, name = line.substr(0, line.find('='));
    if (!RE2::FullMatch(name, kHarmless) || RE2::PartialMatch(name, kSecret)) continue;
    lines.push_back(name + "=" + shell_quoted({withheld(name, line.substr(std::min(name.size() + 1, line.size())))}) +
                    "\n");
  }
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

/// The step of the newest checkpoint in a run's folder; 0 if there is none.
std::int64_t saved_steps(const std::string& run) {
  std::int64_t newest = 0;
  for (const fs::path& entry : entries_of(run)) {
    const std::string name = entry.filename().string();
    if (name.starts_with("checkpoint_")) newest = std::max(newest, parse_int(name.substr(11)).value_or(0));
  }
  return newest;
}

/// `log` as it was when the checkpoint of step `done` was made, without what a launcher said of its end.
std::string log_up_to(const std::string& log, std::int64_t done) {
  std::string kept = parse::earlier_lines(log, done);
  RE2::GlobalReplace(&kept, "(?m)^(srun: |slurmstepd).*\n", "");
  return kept;
}

/// Another's training: its line is run once, by a shell, and finds the launcher in $ZS_LAUNCH.
void start_foreign(Start& start, const std::vector<std::string>& launch) {
  const registry::Fields record = registry::read_record(start.run);
  start.words = {"zs-record", "--", "bash", "-c", line_to_start(record, start.run, start.checkpoint)};
  start.launch = joined(launch, " ");
}

void must_restart(const std::string& run, const std::string& name, const std::string& most) {
  const auto restarts = parse_int(environment_variable("SLURM_RESTART_COUNT")), limit = parse_int(most);
  if (!restarts || !limit || *restarts <= *limit) return;
  run_in(run).update({{"exit_code", to_text(static_cast<std::int64_t>(Status::try_again))}});
  throw Error(name + ": restarted more than " + most + " times (--max_restarts)");
}

namespace fs = std::filesystem;

constexpr std::size_t kLargest = std::size_t{1} << 32;  // bytes

bool is_configuration(const std::string& path) {
  const fs::path file(path);
  return file.filename() == "config.yaml" ||
         (file.extension() == ".yaml" && file.parent_path().filename() == "configs");
}

}  // namespace

Start prepare(const std::string& folder, const std::string& name, const std::vector<std::string>& launch) {
  Start start{launch, fs::canonical(folder).string(), "", ""};
  std::vector<std::string> words;
  if (name.empty()) {
    require_frozen(start.run + "/frozen.sha256");
    const registry::Fields record = registry::read_record(start.run);
    if (is_foreign(record)) {
      start_foreign(start, launch);
      if (!start.checkpoint.empty()) start.label = "goes on from " + start.checkpoint;
      return start;
    }
    words = shell_words(value(record, "command"));
    // The file that it was planned with may have changed since; the run has its whole configuration.
    if (words.size() > 1 && !words[1].starts_with("-")) words[1] = start.run + "/config.yaml";
    start.words.insert(start.words.end(), words.begin(), words.end());
    return start;
  }
  const Lock lock(folder);
  Experiment experiment = Experiment::read(folder);
  Cell& cell = experiment.cell(name);
  start.run = cell.run();
  start.log = experiment.log(cell);
  if (is_foreign(cell.fields)) {
    start_foreign(start, launch);
  } else {
    start.words.emplace_back("zs-train");
    start.words.insert(start.words.end(), cell.arguments.begin(), cell.arguments.end());
  }
  require_frozen(experiment.folder + "/frozen.sha256",
                 {start.run + "/config.yaml", experiment.folder + "/configs/" + name + ".yaml"});
  must_restart(start.run, name, value(experiment.fields, "max_restarts"));
  registry::set(cell.fields, "launch", shell_quoted(launch));
  experiment.write();
  const std::int64_t saved = saved_steps(start.run);
  // The log of another program's training is kept when it resumes: a repeated step replaces the earlier one.
  if (fs::exists(start.log) && start.checkpoint.empty())
    write_file(start.log, saved > 0 && !is_foreign(cell.fields) ? log_up_to(Input(start.log).read_all(), saved) : "");
  append(experiment.detailed_log(cell),
         "date: " + time_text() + "\nhost: " + host_name() + "\nfolder: " + fs::current_path().string() +
             "\nlaunch: " + shell_quoted(start.words) + "\nranks: " + value(experiment.fields, "ranks") + "\n" +
             (is_foreign(cell.fields) ? "zs-record " : "zs-train ") + cli::version() + "\n" + harmless_environment() +
             "\n");
  const std::string restart = environment_variable("SLURM_RESTART_COUNT");
  start.label = experiment.label(cell) + (restart.empty() ? "" : ", restart " + restart) +
                (start.checkpoint.empty() ? "" : ", goes on from " + start.checkpoint);
  return start;
}

void become(const Start& start) {
  ::setenv("ZS_RUN", start.run.c_str(), 1);
  if (!start.launch.empty()) {
    ::setenv("ZS_LAUNCH", start.launch.c_str(), 1);
    // Each run has a separate folder.
    if (const std::string probe = environment_variable("ZS_PROBE"); !probe.empty() && probe != "off")
      ::setenv("ZS_PROBE", (start.run + "/probe").c_str(), 1);
    ::setenv("ZS_RESUMED", start.checkpoint.c_str(), 1);
  }
  std::signal(SIGXFSZ, SIG_DFL);  // as we were called
  const int errors = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (!start.log.empty()) {
    const int file = ::open(start.log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ::dup2(file, STDOUT_FILENO) < 0 || ::dup2(file, STDERR_FILENO) < 0)
      throw Error(start.log, 0, errno_text());
  }
  std::vector<std::string> words = start.words;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const std::string what = errno_text();
  ::dup2(errors, STDERR_FILENO);  // who called us is to hear of it
  throw Error(words[0], 0, what);
}

std::optional<registry::Run> planned_run() {
  const std::string folder = environment_variable("ZS_RUN");
  if (folder.empty()) return {};
  const fs::path path(folder);
  const registry::Run run(path.parent_path().string(), path.filename().string());
  if (!registry::registered(path.parent_path().string(), run.id()))
    throw Error("ZS_RUN: there is no run in " + path.string() + ": submit again");
  const std::string status = value(registry::read_record(run.folder()), "status");
  if (status == registry::status::complete || status == registry::status::diverged)
    throw Error("ZS_RUN: the run in " + path.string() + " has ended (" + status + "): unset ZS_RUN to train another");
  return run;
}

void freeze(const std::string& path, std::vector<std::string> files, bool foreign) {
  const std::string name = foreign ? "zs-record" : "zs-train", program = program_path(name);
  if (program.empty()) throw Error(name + " is not on PATH");
  files.insert(files.begin(), fs::canonical(program).string());
  std::string text;
  for (const std::string& file : files) text += sha256(read_regular(file, kLargest).bytes) + "  " + file + "\n";
  write_file(path, text);
}

void require_frozen(const std::string& path, const std::vector<std::string>& configurations) {
  if (!fs::exists(path)) throw Error("gone since this was submitted: " + path + "; submit again");
  for (const std::string& line : lines_of(Input(path).read_all())) {
    const std::size_t gap = line.find("  ");
    if (gap == std::string::npos) throw Error(path, 0, "is not a list of sha256sum");
    const std::string file = line.substr(gap + 2);
    const bool other = std::ranges::find(configurations, file) == configurations.end();
    if (!configurations.empty() && is_configuration(file) && other) continue;
    std::string now;
    try {
      now = sha256(read_regular(file, kLargest).bytes);
    } catch (const Error&) {  // it is gone
    }
    if (now != line.substr(0, gap))
      throw Error("changed since this was submitted: " + file + "; restore it, or submit a new run");
  }
}

}  // namespace zs::experiment

// SPDX-License-Identifier: Apache-2.0
#include "experiment/lease.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/process.hpp"
#include "base/words.hpp"
#include "experiment/state.hpp"
#include "registry/run.hpp"

namespace zs::experiment {
namespace {

constexpr std::array<std::string_view, 11> kEnded = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE",
                                                     "FAILED",    "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
                                                     "REVOKED",   "TIMEOUT",   "LAUNCH_FAILED"};
constexpr std::size_t kIdsAtOnce = 500;

constexpr double kPatience = 20;  // s

Ended ask(const std::vector<std::string>& words) {
  Program program{words};
  program.captured = true;
  program.seconds = kPatience;
  return run(program);
}

std::string cluster_name(const std::string& config) {
  const std::size_t line = config.find("\nClusterName");
  const std::size_t equals = line == std::string::npos ? line : config.find("= ", line);
  if (equals == std::string::npos) return "";
  return config.substr(equals + 2, config.find_first_of(" \n", equals + 2) - equals - 2);
}

std::string silence(const Ended& answer) {
  if (answer.status == 127) return "no scontrol on PATH";
  if (answer.status == 124) return "Slurm does not answer";
  return "Slurm does not answer: " + answer.errors.substr(0, answer.errors.find('\n'));
}

}  // namespace

bool Job::live() const { return std::ranges::find(kEnded, state) == kEnded.end(); }

void add_jobs(std::string_view lines, std::map<std::string, Job>& jobs) {
  for (const std::string& line : lines_of(lines)) {
    const std::vector<std::string> fields = split(line, "|");
    if (fields.size() < 3 || fields[0].empty() || fields[0].find_first_not_of("0123456789_") != std::string::npos)
      continue;
    Job job{fields[1].substr(0, fields[1].find(' ')), fields[2], {}};  // "CANCELLED by 1000"
    if (job.nodes == "None assigned") job.nodes.clear();
    if (fields.size() > 3 && job.state == "PENDING" && fields[3] != "None") job.reason = fields[3];
    jobs.try_emplace(fields[0], job);
  }
}

Queue ask_slurm(const std::vector<std::string>& ids) {
  Queue queue;
  const Ended config = ask({"scontrol", "show", "config"});
  if (config.status != 0) return {"", silence(config), {}};
  queue.cluster = cluster_name(config.output);
  std::vector<std::string> unique(ids);
  std::ranges::sort(unique);
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  for (std::size_t begin = 0; begin < unique.size(); begin += kIdsAtOnce) {
    const auto from = unique.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = from + static_cast<std::ptrdiff_t>(std::min(kIdsAtOnce, unique.size() - begin));
    const std::string list = fmt::format("{}", fmt::join(from, to, ","));
    const Ended now = ask({"squeue", "-h", "-a", "-r", "-t", "all", "-j", list, "-o", "%i|%T|%N|%r"});
    // It fails if it knows none of the jobs.
    if (now.status != 0 && now.errors.find("Invalid job id") == std::string::npos) return {"", silence(now), {}};
    add_jobs(now.output, queue.jobs);
    // Jobs that squeue has forgotten; without accounts sacct only reports that.
    add_jobs(ask({"sacct", "-n", "-X", "-P", "-j", list, "-o", "JobID,State,NodeList"}).output, queue.jobs);
  }
  return queue;
}

namespace {

namespace fs = std::filesystem;
using registry::value;

// A separate folder: a change of the run's folder must mean that the record has grown, since the index reads its time.
constexpr const char* kFolder = "/.owner";
constexpr std::size_t kMost = 1 << 16;  // bytes of an owner file: more is none of ours

std::string path_of(const std::string& folder, std::int64_t number) { return folder + kFolder + "/" + to_text(number); }

/// The numbers of the owner files of the run in `folder`, ascending.
std::vector<std::int64_t> numbers(const std::string& folder) {
  std::vector<std::int64_t> found;
  for (const fs::path& entry : entries_of(folder + kFolder)) {
    if (const auto number = parse_int(entry.filename().string())) found.push_back(*number);
  }
  std::ranges::sort(found);
  return found;
}

/// The content of an owner file; "" if it is still being written, or is not a plain file.
std::string content(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file < 0) return "";
  struct stat status {};
  std::string bytes;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    bytes.resize(std::min(static_cast<std::size_t>(status.st_size), kMost));
    const ssize_t count = ::read(file, bytes.data(), bytes.size());
    bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  }
  return bytes;
}

/// Creates the owner file of that number; false if it exists. Throws Error.
bool make(const std::string& folder, std::int64_t number, const registry::Fields& fields) {
  const std::string path = path_of(folder, number);
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file < 0 && errno == EEXIST) return false;
  if (file < 0) throw Error(path, 0, errno_text());
  const std::string text = registry::record_text(fields);
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written) return true;
  const std::string failure = errno_text();
  ::unlink(path.c_str());
  throw Error(path, 0, "write: " + failure);
}

void remove_below(const std::string& folder, std::int64_t number) {
  for (const std::int64_t each : numbers(folder)) {
    if (each < number) ::unlink(path_of(folder, each).c_str());
  }
}

registry::Fields own_fields() {
  registry::Fields fields = registry::environment();
  registry::set(fields, "since", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))));
  return fields;
}

void ask_about_job(Holder& holder) {
  const std::string job = value(holder.fields, "slurm_job_id"), array = value(holder.fields, "slurm_array_job_id");
  if (job.empty()) return;
  // Slurm begins a job again only when the last attempt is over for it; a node that comes back loses the lease.
  if (job == environment_variable("SLURM_JOB_ID") &&
      value(holder.fields, "slurm_cluster_name") == environment_variable("SLURM_CLUSTER_NAME") &&
      value(holder.fields, "slurm_restart_count") != environment_variable("SLURM_RESTART_COUNT")) {
    holder.live = false;
    holder.basis = "this is its job " + job + ", which Slurm began again";
    return;
  }
  const std::string id = array.empty() ? job : array + "_" + value(holder.fields, "slurm_array_task_id");
  const Queue queue = ask_slurm({array.empty() ? job : array});
  const std::string cluster = value(holder.fields, "slurm_cluster_name");
  if (!queue.silence.empty() || (!cluster.empty() && cluster != queue.cluster)) return;
  const auto known = queue.jobs.find(id);
  holder.live = holder.here = known != queue.jobs.end() && known->second.live();
  holder.basis = "job " + id + (known == queue.jobs.end() ? " is not in the queue" : " is " + known->second.state);
}

Holder read_holder(const std::string& folder, std::int64_t number) {
  Holder holder;
  const std::string path = path_of(folder, number), text = content(path);
  try {
    registry::merge_record_text(text, path, holder.fields);
  } catch (const Error&) {
    // The file is incomplete: its writer has just begun, or was killed there.
    holder.fields = {{"host", "an unknown host"}};
  }
  if (holder.fields.empty()) return holder;  // given back
  const std::string pid = value(holder.fields, "process").substr(0, value(holder.fields, "process").find(':')),
                    since = value(holder.fields, "since");
  holder.text = (pid.empty() ? "a process" : "process " + pid) + " on " + value(holder.fields, "host") +
                (since.empty() ? "" : ", since " + since);
  const Process process = experiment::process(holder.fields);
  if (process == Process::alive || process == Process::gone) {
    holder.live = holder.here = process == Process::alive;
    holder.basis = std::string("its process on this host is ") + (holder.live ? "alive" : "gone");
    return holder;
  }
  holder.live = true;
  holder.basis = "this host cannot check whether it is alive";
  ask_about_job(holder);
  return holder;
}

}  // namespace

Holder holder(const std::string& folder) {
  const std::vector<std::int64_t> leases = numbers(folder);
  return leases.empty() ? Holder{} : read_holder(folder, leases.back());
}

Lease::Lease(std::string folder, bool take_over) : folder_(std::move(folder)) {
  if (::mkdir((folder_ + kFolder).c_str(), 0777) != 0 && errno != EEXIST) throw Error(folder_, 0, errno_text());
  while (number_ == 0) {
    const std::vector<std::int64_t> leases = numbers(folder_);
    const std::int64_t newest = leases.empty() ? 0 : leases.back();
    const Holder other = newest == 0 ? Holder{} : read_holder(folder_, newest);
    if (other.live && (other.here || !take_over)) {
      throw Error(folder_, 0,
                  "is being trained by " + other.text + " (" + other.basis +
                      "): " + (other.here ? "end that first" : "if it is over, continue with --take_over"));
    }
    // The process that loses the race for the next number looks again.
    if (make(folder_, newest + 1, own_fields())) number_ = newest + 1;
  }
  remove_below(folder_, number_);
}

Lease::~Lease() {
  try {
    if (make(folder_, number_ + 1, {})) remove_below(folder_, number_ + 1);
  } catch (const std::exception&) {
    // The folder is gone, or is full: then this process is, and whoever comes next finds that out.
  }
}

bool Lease::held() const {
  const std::vector<std::int64_t> leases = numbers(folder_);
  return !leases.empty() && leases.back() == number_;
}

void Lease::check() const {
  if (held()) return;
  const Holder other = holder(folder_);
  throw Error(folder_, 0,
              other.text.empty() ? "was removed, or another process ended this training's lease"
                                 : "was taken over by " + other.text + ": this training ends here");
}

}  // namespace zs::experiment

// SPDX-License-Identifier: Apache-2.0
#include "experiment/queue.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/process.hpp"

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

bool Job::live() const { return std::find(kEnded.begin(), kEnded.end(), state) == kEnded.end(); }

void add_jobs(std::string_view lines, std::map<std::string, Job>& jobs) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const std::size_t first = line.find('|'), second = line.find('|', std::min(first, line.size() - 1) + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view id = line.substr(0, first);
    if (id.empty() || id.find_first_not_of("0123456789_") != std::string_view::npos) continue;
    const std::string_view state = line.substr(first + 1, second - first - 1);
    std::string nodes(line.substr(second + 1));
    if (nodes == "None assigned") nodes.clear();
    // "CANCELLED by 1000"
    jobs.try_emplace(std::string(id), Job{std::string(state.substr(0, state.find(' '))), nodes});
  }
}

Queue ask_slurm(const std::vector<std::string>& ids) {
  Queue queue;
  const Ended config = ask({"scontrol", "show", "config"});
  if (config.status != 0) return {"", silence(config), {}};
  queue.cluster = cluster_name(config.output);
  std::vector<std::string> unique(ids);
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  for (std::size_t begin = 0; begin < unique.size(); begin += kIdsAtOnce) {
    const auto from = unique.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = from + static_cast<std::ptrdiff_t>(std::min(kIdsAtOnce, unique.size() - begin));
    const std::string list = fmt::format("{}", fmt::join(from, to, ","));
    const Ended now = ask({"squeue", "-h", "-a", "-r", "-t", "all", "-j", list, "-o", "%i|%T|%N"});
    // It fails if it knows none of the jobs.
    if (now.status != 0 && now.errors.find("Invalid job id") == std::string::npos) return {"", silence(now), {}};
    add_jobs(now.output, queue.jobs);
    // Jobs that squeue has forgotten; without accounts sacct only reports that.
    add_jobs(ask({"sacct", "-n", "-X", "-P", "-j", list, "-o", "JobID,State,NodeList"}).output, queue.jobs);
  }
  return queue;
}

}  // namespace zs::experiment

// SPDX-License-Identifier: Apache-2.0
#include "experiment/queue.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/shell.hpp"

namespace zs::experiment {
namespace {

constexpr std::array<std::string_view, 11> kEnded = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE",
                                                     "FAILED",    "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
                                                     "REVOKED",   "TIMEOUT",   "LAUNCH_FAILED"};
constexpr std::size_t kIdsAtOnce = 500;

struct Said {
  int status = 0;  // as a shell's: 127 no such program, 124 it took too long
  std::string text;
};

Said run(std::vector<std::string> words) {
  words.insert(words.begin(), {"timeout", "20"});
  Said said;
  FILE* const pipe = ::popen((shell_quoted(words) + " 2>&1").c_str(), "r");
  if (!pipe) return {127, ""};
  std::array<char, 1 << 14> buffer;
  for (std::size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    said.text.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  said.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return said;
}

std::string cluster_name(const std::string& config) {
  const std::size_t line = config.find("\nClusterName");
  const std::size_t equals = line == std::string::npos ? line : config.find("= ", line);
  if (equals == std::string::npos) return "";
  return config.substr(equals + 2, config.find_first_of(" \n", equals + 2) - equals - 2);
}

std::string silence(const Said& said) {
  if (said.status == 127) return "no scontrol on PATH";
  if (said.status == 124) return "Slurm does not answer";
  return "Slurm does not answer: " + said.text.substr(0, said.text.find('\n'));
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
  const Said config = run({"scontrol", "show", "config"});
  if (config.status != 0) return {"", silence(config), {}};
  queue.cluster = cluster_name(config.text);
  std::vector<std::string> unique(ids);
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  for (std::size_t begin = 0; begin < unique.size(); begin += kIdsAtOnce) {
    std::string list;
    for (std::size_t i = begin; i < std::min(unique.size(), begin + kIdsAtOnce); ++i)
      list += (list.empty() ? "" : ",") + unique[i];
    const Said now = run({"squeue", "-h", "-a", "-r", "-t", "all", "-j", list, "-o", "%i|%T|%N"});
    // It fails where it knows none of the jobs.
    if (now.status != 0 && now.text.find("Invalid job id") == std::string::npos) return {"", silence(now), {}};
    add_jobs(now.text, queue.jobs);
    // What squeue has forgotten; without accounts sacct only says so.
    add_jobs(run({"sacct", "-n", "-X", "-P", "-j", list, "-o", "JobID,State,NodeList"}).text, queue.jobs);
  }
  return queue;
}

}  // namespace zs::experiment

// SPDX-License-Identifier: Apache-2.0
#include "recording/kernel_log.hpp"

#include <fcntl.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/words.hpp"

namespace zs::recording {
namespace {

constexpr std::size_t kTold = 3;  // a failing GPU repeats a message up to this number of times

/// The rank in the environment of a process; -1 if there is none.
int rank_of(const std::string& environment) {
  for (const char* const name : {"RANK=", "OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "SLURM_PROCID="}) {
    std::size_t at = environment.starts_with(name) ? 0 : environment.find(std::string(1, '\0') + name);
    if (at == std::string::npos) continue;
    at = environment.find('=', at) + 1;
    if (const auto rank = parse_int(environment.substr(at, environment.find('\0', at) - at)))
      return static_cast<int>(*rank);
  }
  return -1;
}

/// "rank 1 (process 4711, python3)"; "" for a process that has nothing to do with the training.
std::string member_text(std::int64_t process, const std::string& name, const Members& members) {
  const std::string number = to_text(process) + (name.empty() ? "" : ", " + printable(name));
  if (const auto found = members.find(static_cast<pid_t>(process)); found != members.end())
    return found->second.rank < 0 ? "process " + number
                                  : "rank " + to_text(std::int64_t{found->second.rank}) + " (process " + number + ")";
  const bool namesake =
      std::ranges::any_of(members, [&](const auto& member) { return !name.empty() && member.second.name == name; });
  return namesake ? "process " + number + ", by the host's numbers" : "";
}

std::string explain_kill(std::string_view line, const Members& members) {
  static const RE2 kKilled(R"([Oo]ut of memory: Kill(?:ed)? process (\d+) \(([^)]*)\)(?:.*?anon-rss:(\d+)kB)?)");
  std::int64_t process = 0;
  std::string name, held;
  if (!RE2::PartialMatch(line, kKilled, &process, &name, &held)) return "";
  const std::string who = member_text(process, name, members);
  if (who.empty()) return "";
  const auto kilobytes = parse_int(held);
  return "out of memory: the kernel killed " + who +
         (kilobytes ? ", which held " + to_bytes_text(1024.0 * static_cast<double>(*kilobytes)) : "");
}

std::string explain_xid(std::string_view line, const Members& members) {
  static const RE2 kXid(R"(NVRM: Xid \(PCI:([0-9A-Fa-f:.]+)\): (\d+), (?:pid='?([^,']*)'?, )?(?:name=([^,]*), )?(.*))");
  std::string gpu, number, process, name, words;
  if (!RE2::PartialMatch(line, kXid, &gpu, &number, &process, &name, &words)) return "";
  std::string who;
  if (const auto known = parse_int(process)) {
    who = member_text(*known, name, members);
    if (who.empty()) who = "process " + process + ", which is not of this training";
  }
  return "GPU " + gpu + " had Xid " + number + (who.empty() ? "" : " under " + who) + ": " +
         printable(first_characters(words, 120));
}

}  // namespace

void add_members(const std::vector<pid_t>& processes, Members& members) {
  for (const pid_t process : processes) {
    const auto known = members.find(process);  // a launcher's copy may have become a rank since
    if (known != members.end() && known->second.rank >= 0) continue;
    const std::string place = "/proc/" + std::to_string(process);
    try {
      std::string name = Input(place + "/comm").read_all();
      if (name.ends_with('\n')) name.pop_back();
      members[process] = {name, rank_of(Input(place + "/environ").read_all())};
    } catch (const std::exception&) {  // it has ended, or is another user's
    }
  }
}

std::string explain_kernel_line(std::string_view line, const Members& members) {
  const std::string kill = explain_kill(line, members);
  return kill.empty() ? explain_xid(line, members) : kill;
}

KernelLog::KernelLog() {
  const std::string named = environment_variable("ZS_KERNEL_LOG");
  file_ = Descriptor(::open(named.empty() ? "/dev/kmsg" : named.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file_ >= 0) ::lseek(file_, 0, SEEK_END);
}

std::string KernelLog::said(const Members& members) {
  std::string text;
  std::array<char, 8192> buffer;  // the device gives one record at a time
  while (file_ >= 0) {
    const ssize_t count = ::read(file_, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EPIPE && errno != EINTR)) break;  // EPIPE: records were overwritten
  }
  for (const std::string& line : lines_of(text)) {
    if (line.find("NVRM: Xid") != std::string::npos || line.find("ut of memory: Kill") != std::string::npos)
      lines_.push_back(line);
  }
  std::vector<std::string> told;
  for (const std::string& line : lines_) {
    std::string words = explain_kernel_line(line, members);
    if (!words.empty() && std::ranges::find(told, words) == told.end()) told.push_back(std::move(words));
  }
  return some_of(told, kTold, "; ", "; and ");
}

}  // namespace zs::recording

// SPDX-License-Identifier: Apache-2.0
#include "recording/hang.hpp"

#include <fcntl.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "config/share.hpp"
#include "flight/dump.hpp"
#include "recording/command.hpp"

namespace zs::recording {
namespace {

namespace fs = std::filesystem;
using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr double kPatience = 10;  // s, for a program that is asked

/// Python finds sitecustomize there. Nothing if zs has no share folder.
void add_start(Variables& variables) {
  try {
    const std::string before = environment_variable("PYTHONPATH"), site = config::share_path("probe/site");
    variables.emplace_back("PYTHONPATH", site + (before.empty() ? "" : ":" + before));
  } catch (const Error&) {
  }
}

struct Frame {
  std::string file, function;
  std::int64_t line = 0;
  bool of_library() const {
    for (const char* const part : {"site-packages/", "dist-packages/", "/lib/python3", "<", "/torch/", "/deepspeed/"}) {
      if (file.find(part) != std::string::npos) return true;
    }
    return false;
  }
};

/// The threads of a stack, each from the innermost frame out.
std::vector<std::vector<Frame>> threads_of(const std::string& text) {
  static const RE2 kThread("(hread|Stack).*\\(most recent call first\\)"),
      kFrame("^  File \"(.*)\", line (\\d+) in (.*)$");
  std::vector<std::vector<Frame>> threads;
  for (const std::string& line : lines_of(text)) {
    Frame frame;
    if (RE2::PartialMatch(line, kThread))
      threads.emplace_back();
    else if (!threads.empty() && RE2::FullMatch(line, kFrame, &frame.file, &frame.line, &frame.function))
      threads.back().push_back(frame);
  }
  return threads;
}

std::string place_of(const Frame& frame) {
  return fs::path(frame.file).filename().string() + ":" + to_text(frame.line) +
         (frame.function == "<module>" ? "" : " in " + frame.function);
}

std::string ranks_text(const std::vector<const Where*>& ranks) {
  if (ranks.front()->rank < 0) return "process " + to_text(std::int64_t{ranks.front()->process});
  return (ranks.size() == 1 ? "rank " : "ranks ") +
         with_and(ranks, [](const Where* where) { return std::to_string(where->rank); });
}

/// "all_reduce at train.py:57 in step"
std::string waits_in(const Where& where) {
  return where.collective + (where.place.empty() ? "" : " at " + where.place);
}

/// The file of a process that can be asked: HOST.PID.txt, whose first line is "RANK WORLD_SIZE WORD...".
struct File {
  std::string path, host, head;
  long process = 0;
  std::uintmax_t asked = 0;  ///< its size before it was asked
  Where where{};
};

std::string content(const File& file) {
  try {
    return Input(file.path).read_all().substr(file.asked);
  } catch (const std::exception&) {
    return "";
  }
}

std::vector<File> files_of(const std::string& folder) {
  std::vector<File> files;
  for (const fs::path& entry : entries_of(folder)) {
    File file{entry.string(), "", "", 0};
    const std::string name = entry.stem().string();
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos) continue;
    file.host = name.substr(0, dot);
    file.process = parse_int(name.substr(dot + 1)).value_or(0);
    const std::string text = content(file);
    file.head = text.substr(0, text.find('\n'));
    file.asked = text.size();
    std::istringstream words(file.head);
    std::string rank, ranks;
    words >> rank >> ranks;
    file.where.rank = static_cast<int>(parse_int(rank).value_or(-1));
    file.where.ranks = static_cast<int>(parse_int(ranks).value_or(0));
    file.where.process = file.process;
    files.push_back(std::move(file));
  }
  std::ranges::sort(files, [](const File& a, const File& b) { return a.process < b.process; });
  return files;
}

/// The state of our process that was started for the run in `folder`; nothing if it has ended.
char state_of(long process, const std::string& folder) {
  try {
    const std::string place = "/proc/" + std::to_string(process);
    const std::string environment = Input(place + "/environ").read_all();
    if (environment.find("ZS_STACKS=" + folder + "/stacks") == std::string::npos) return 0;
    const std::string stat = Input(place + "/stat").read_all();
    const char state = stat.at(stat.rfind(')') + 2);
    return state == 'Z' || state == 'X' ? '\0' : state;
  } catch (const std::exception&) {
    return 0;
  }
}

/// py-spy's stack in faulthandler's form.
std::string of_py_spy(const std::string& text) {
  static const RE2 kThread("^Thread \\S+ \\(.*\\)"), kFrame("^\\s+(\\S+) \\((.*):(\\d+)\\)$");
  std::string made;
  for (const std::string& line : lines_of(text)) {
    std::string function, file, number;
    if (RE2::PartialMatch(line, kThread))
      made += "Thread (most recent call first):\n";
    else if (RE2::FullMatch(line, kFrame, &function, &file, &number))
      made += "  File \"" + file + "\", line " + number + " in " + function + "\n";
  }
  return made;
}

/// Asks for the Flight Recorder's dumps.
void ask_for_dumps(const std::string& folder) {
  bool asked = false;
  for (const fs::path& entry : entries_of(folder)) {
    if (entry.extension() != ".pipe") continue;
    const Descriptor pipe(::open(entry.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    asked = (pipe >= 0 && ::write(pipe, "1\n", 2) == 2) || asked;
  }
  if (asked) std::this_thread::sleep_for(std::chrono::seconds(5));
}

}  // namespace

Variables variables_to_probe() {
  Variables variables;
  if (const std::string probe = environment_variable("ZS_PROBE"); !probe.empty() && probe != "off")
    add_start(variables);
  return variables;
}

Variables variables_to_ask(const std::string& folder) {
  const std::string absolute = fs::absolute(folder).string();
  Variables variables = {{"ZS_STACKS", absolute + "/stacks"}};
  add_start(variables);
  std::error_code failure;
  fs::create_directories(absolute + "/flight", failure);
  // sitecustomize gives a PyTorch before 2.10 the names that it knows.
  for (const auto& [name, value] : Variables{{"TORCH_FR_BUFFER_SIZE", "2000"},
                                             {"TORCH_FR_DUMP_TEMP_FILE", absolute + "/flight/rank_"},
                                             {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", absolute + "/flight/ask_"},
                                             {"TORCH_NCCL_DUMP_ON_TIMEOUT", "1"}}) {
    if (environment_variable(name.c_str()).empty()) variables.emplace_back(name, value);
  }
  return variables;
}

void read_stack(const std::string& text, Where& where) {
  // Functions of libraries that wait for other ranks without distributed_c10d.py, and for the GPU.
  static const std::map<std::string, std::string> kWaits = {{"_engine_run_backward", "backward"},
                                                            {"backward", "backward"},
                                                            {"_distributed_broadcast_coalesced", "broadcast"},
                                                            {"wait_tensor", "a collective"},
                                                            {"synchronize", "a wait for the GPU"}};
  for (const std::vector<Frame>& frames : threads_of(text)) {
    if (frames.empty() || frames.back().function != "<module>") continue;
    where.collective.clear();
    // The runner of a script (python -m) is the outermost frame.
    const auto outermost = std::ranges::find_if(frames, [](const Frame& frame) { return !frame.of_library(); });
    for (auto frame = frames.begin(); frame != outermost; ++frame) {
      if (frame->file.ends_with("distributed_c10d.py") && frame->function != "wrapper")
        where.collective = frame->function;
      const auto wait = kWaits.find(frame->function);
      if (where.collective.empty() && wait != kWaits.end()) where.collective = wait->second;
    }
    where.place = place_of(outermost == frames.end() ? frames.front() : *outermost);
  }
}

std::string explain(const std::vector<Where>& ranks) {
  std::vector<const Where*> gone, silent, waiting, busy;
  for (const Where& one : ranks)
    (one.gone ? gone : one.silent ? silent : one.collective.empty() ? busy : waiting).push_back(&one);
  const auto others = [&]() -> std::string {
    if (waiting.empty()) return busy.empty() ? "" : ", while " + ranks_text({busy[0]}) + " is at " + busy[0]->place;
    return ", while " + ranks_text(waiting) + (waiting.size() == 1 ? " waits in " : " wait in ") +
           waits_in(*waiting[0]);
  };
  if (!gone.empty())
    return ranks_text(gone) + (gone.size() == 1 ? " is gone: its process has" : " are gone: their processes have") +
           " ended" + others();
  if (!silent.empty()) {
    const bool stopped = silent[0]->state == 'T' || silent[0]->state == 't';
    return ranks_text(silent) + (silent.size() == 1 ? " does" : " do") + " not answer" +
           (stopped                   ? ": it is stopped by a signal"
            : silent[0]->state == 'D' ? ": it waits in the kernel, for a disk or a device"
                                      : "") +
           others();
  }
  if (busy.empty() && waiting.empty()) return "no rank reported its position";
  if (!busy.empty()) {
    std::string text = ranks_text({busy[0]}) + " is at " + busy[0]->place;
    for (std::size_t i = 1; i < std::min<std::size_t>(busy.size(), 4); ++i)
      text += ", " + ranks_text({busy[i]}) + " at " + busy[i]->place;
    return text + (waiting.empty() ? "" : others());
  }
  std::map<std::string, std::vector<const Where*>> places;
  for (const Where* const one : waiting) places[waits_in(*one)].push_back(one);
  if (places.size() == 1)
    return (waiting.size() == 1 ? ranks_text(waiting) + " waits in " : "all ranks wait in ") + waits_in(*waiting[0]) +
           ": none of them is behind the others";
  std::string text = "the ranks wait in different places: ";
  for (auto place = places.begin(); place != places.end(); ++place)
    text += (place == places.begin() ? "" : ", ") + ranks_text(place->second) + " in " + place->first;
  return text;
}

std::string said_by_dumps(const std::string& folder) {
  try {
    const flight::Finding found = flight::explain(flight::read_dumps(folder + "/flight", [](const Fault&) {}));
    return found.stuck ? found.sentence : "";
  } catch (const std::exception&) {  // there are none
    return "";
  }
}

std::string why_it_hangs(const std::string& folder) {
  const std::string absolute = fs::absolute(folder).string();
  std::vector<File> files = files_of(absolute + "/stacks");
  const bool by_rank = std::ranges::any_of(files, [](const File& file) { return file.where.rank >= 0; });
  if (by_rank) std::erase_if(files, [](const File& file) { return file.where.rank < 0; });
  bool elsewhere = false;
  for (File& file : files) {
    if (file.host != host_name()) {
      elsewhere = true;
      file.where.state = '?';
      continue;
    }
    file.where.state = state_of(file.process, absolute);
    file.where.gone = file.where.state == 0;
    if (!file.where.gone) ::kill(static_cast<pid_t>(file.process), SIGURG);
  }
  // Processes on other nodes are asked through Slurm: a process without a handler ignores the signal.
  if (const std::string job = environment_variable("SLURM_JOB_ID"); elsewhere && !job.empty())
    printed_by({"scancel", "--signal=" + std::to_string(SIGURG), job}, kPatience);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto answered = [](const File& file) {
    const bool stopped = file.where.state == 'T' || file.where.state == 't';  // it cannot answer
    return file.where.gone || stopped || content(file).find("<module>") != std::string::npos;
  };
  while (!std::ranges::all_of(files, answered) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::map<long, Where> ranks;  // by rank, or by process if unknown
  std::string stacks;
  for (File& file : files) {
    std::string text = content(file);
    if (!file.where.gone && text.find("<module>") == std::string::npos && file.where.state != '?') {
      const std::string seen =
          of_py_spy(printed_by({"py-spy", "dump", "--pid", std::to_string(file.process)}, kPatience));
      if (!seen.empty()) text = seen;
    }
    read_stack(text, file.where);
    file.where.silent = !file.where.gone && file.where.place.empty();
    stacks += "== " + file.host + ", process " + std::to_string(file.process) + ", " + file.head + "\n" + text + "\n";
    // A rank's own process began before those that it started.
    const long key = by_rank ? file.where.rank : file.process;
    const auto found = ranks.find(key);
    if (found == ranks.end() || (found->second.gone && !file.where.gone)) ranks[key] = file.where;
  }
  std::vector<Where> list;
  for (const auto& [key, where] : ranks) list.push_back(where);
  std::string sentence = explain(list);
  ask_for_dumps(absolute + "/flight");
  if (const std::string flight = said_by_dumps(absolute); !flight.empty()) sentence += "; " + flight;
  try {
    write_file(absolute + "/hang.txt", sentence + "\n\n" + stacks);
  } catch (const std::exception&) {  // the disk is full: the sentence stays
  }
  return sentence;
}

}  // namespace zs::recording

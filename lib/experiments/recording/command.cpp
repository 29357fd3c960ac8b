// SPDX-License-Identifier: Apache-2.0
#include "recording/command.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/process.hpp"
#include "parse/tracked.hpp"

namespace zs::recording {
namespace {

/// The two ends of a stream: we read from one, the command writes to the other.
struct Ends {
  int ours = -1, theirs = -1;
};

void must(bool done, const char* what) {
  if (!done) throw Error(std::string(what) + ": " + errno_text());
}

Ends make_pipe() {
  std::array<int, 2> ends{};
  must(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe");
  constexpr int kLarge = 1 << 20;  // bytes: the command need not wait while we write
  ::fcntl(ends[0], F_SETPIPE_SZ, kLarge);
  return {ends[0], ends[1]};
}

/// A terminal as large as ours that changes no byte: ours does what there is to do.
Ends make_terminal(int like) {
  Ends ends;
  ends.ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  must(ends.ours >= 0 && ::grantpt(ends.ours) == 0 && ::unlockpt(ends.ours) == 0, "pseudoterminal");
  std::array<char, 64> name{};
  must(::ptsname_r(ends.ours, name.data(), name.size()) == 0, "pseudoterminal");
  ends.theirs = ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  must(ends.theirs >= 0, name.data());
  termios mode{};
  if (::tcgetattr(ends.theirs, &mode) == 0) {
    mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    mode.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(ends.theirs, TCSANOW, &mode);
  }
  winsize size{};
  if (::ioctl(like, TIOCGWINSZ, &size) == 0) ::ioctl(ends.ours, TIOCSWINSZ, &size);
  return ends;
}

bool is_open(int file) { return ::fcntl(file, F_GETFD) >= 0; }

bool same_place(int a, int b) {
  struct stat x {
  }, y{};
  return ::fstat(a, &x) == 0 && ::fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/// In the new process: becomes the program, or says why not through `failure`.
[[noreturn]] void become(const std::string& path, std::vector<char*>& arguments, int out, int err, int failure,
                         pid_t parent, const sigset_t& blocked) {
  const auto fail = [&](int code) {
    const ssize_t ignored = ::write(failure, &code, sizeof code);
    static_cast<void>(ignored);
    ::_exit(127);
  };
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  if (out >= 0 && ::dup2(out, STDOUT_FILENO) < 0) fail(errno);
  if (err >= 0 && ::dup2(err, STDERR_FILENO) < 0) fail(errno);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGBUS}) std::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  ::execv(path.c_str(), arguments.data());
  if (errno == ENOEXEC) {  // a script without "#!", which a shell runs
    std::string shell = "/bin/sh", file = path;
    std::vector<char*> words = {shell.data(), file.data()};
    words.insert(words.end(), arguments.begin() + 1, arguments.end());
    ::execv(shell.c_str(), words.data());
  }
  fail(errno);
  ::_exit(127);
}

/// The names in a folder; none if it cannot be read.
template <typename Use>
void each_name(const std::string& folder, Use use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  while (const dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    if (entry->d_name[0] != '.') use(entry->d_name);
  }
}

}  // namespace

std::string printed_by(const std::vector<std::string>& words, double seconds) try {
  Ended ended = run({.words = words, .input = [](std::FILE*) {}, .captured = true, .seconds = seconds});
  ended.output.erase(ended.output.find_last_not_of('\n') + 1);
  return ended.status == 0 ? ended.output : "";
} catch (const Error&) {  // no program can be started
  return "";
}

Command::Command(std::vector<std::string> words, const std::vector<std::pair<std::string, std::string>>& variables,
                 const sigset_t& blocked) {
  const std::string path = program_path(words.at(0));
  if (path.empty()) throw Error(words[0] + ": there is no such command");
  const bool out = is_open(STDOUT_FILENO), err = is_open(STDERR_FILENO);
  const bool both = out && err && same_place(STDOUT_FILENO, STDERR_FILENO);
  const auto ends_of = [](int file) { return ::isatty(file) ? make_terminal(file) : make_pipe(); };
  Ends first = ends_of(STDOUT_FILENO), second = both ? first : ends_of(STDERR_FILENO);
  for (const auto& [file, ends] : {std::pair{STDOUT_FILENO, first}, {STDERR_FILENO, second}}) {
    if (file == STDERR_FILENO && both) break;
    streams_.push_back({ends.ours, file});
    ::fcntl(ends.ours, F_SETFL, O_NONBLOCK);
    if (::isatty(ends.theirs)) terminals_.push_back(ends.ours);
  }
  const Ends failure = make_pipe();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  must(process_ >= 0, "fork");
  if (process_ == 0) {
    for (const auto& [name, value] : variables)
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    become(path, arguments, first.theirs, second.theirs, failure.theirs, parent, blocked);
  }
  ::close(first.theirs);
  if (!both) ::close(second.theirs);
  ::close(failure.theirs);
  ended_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
  int code = 0;
  const bool failed = ::read(failure.ours, &code, sizeof code) == sizeof code;
  ::close(failure.ours);
  if (!failed) return;
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  throw Error(words[0] + ": cannot be started: " + std::strerror(code));
}

Command::~Command() {
  for (const Stream& stream : streams_) ::close(stream.from);
}

void Command::resize() const {
  for (const int terminal : terminals_) {
    for (const int like : {STDOUT_FILENO, STDERR_FILENO}) {
      winsize size{};
      if (::isatty(like) && ::ioctl(like, TIOCGWINSZ, &size) == 0) {
        ::ioctl(terminal, TIOCSWINSZ, &size);
        break;
      }
    }
  }
}

void Command::send(int signal) const { ::kill(process_, signal); }

void Command::warn(int signal) const {
  // It has a handler, or sleeps with the signal blocked, since it waits for it. A shell that starts a program blocks
  // all signals meanwhile, but does not sleep: it is looked at again.
  const auto heeds = [&](pid_t process) {
    for (int look = 0; look < 100; ++look, std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
      std::ifstream status("/proc/" + std::to_string(process) + "/status");
      bool sleeps = false, blocks = false;
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with("State:")) sleeps = line.find('S', 6) != line.npos;
        if (!line.starts_with("SigCgt:") && !line.starts_with("SigBlk:")) continue;
        const bool has = std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1) & 1;
        if (has && line[3] == 'C') return true;
        blocks = blocks || has;
      }
      if (!blocks || sleeps) return blocks;
    }
    return true;
  };
  std::vector<pid_t> told, line = {process_};
  while (!line.empty()) {
    const pid_t process = line.back();
    line.pop_back();
    if (heeds(process)) {
      told.push_back(process);
      continue;
    }
    const std::vector<pid_t> below = children(process);
    line.insert(line.end(), below.begin(), below.end());
  }
  if (told.empty()) told.push_back(process_);
  for (const pid_t process : told) ::kill(process, signal);
}

Command::End Command::wait() const {
  int status = 0;
  rusage used{};
  while (::wait4(process_, &status, 0, &used) < 0 && errno == EINTR) continue;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          seconds(used.ru_utime) + seconds(used.ru_stime), std::int64_t{used.ru_maxrss} * 1024};
}

std::vector<pid_t> children(pid_t process) {
  std::vector<pid_t> processes;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task/";
  each_name(tasks, [&](const char* task) {
    std::ifstream file(tasks + task + "/children");
    for (pid_t child = 0; file >> child;) processes.push_back(child);
  });
  return processes;
}

std::vector<pid_t> family(pid_t process) {
  std::vector<pid_t> members = {process};
  std::set<pid_t> seen = {process};
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (const pid_t child : children(members[i])) {
      if (seen.insert(child).second) members.push_back(child);
    }
  }
  return members;
}

std::vector<std::string> open_tracker_files(const std::vector<pid_t>& processes) {
  std::set<std::string> files;
  std::array<char, PATH_MAX> target;
  for (const pid_t process : processes) {
    const std::string folder = "/proc/" + std::to_string(process) + "/fd/";
    each_name(folder, [&](const char* number) {
      const ssize_t size = ::readlink((folder + number).c_str(), target.data(), target.size());
      if (size <= 0 || target[0] != '/') return;
      const std::string path(target.data(), static_cast<std::size_t>(size));
      if (parse::source_of(path) != parse::Source::log) files.insert(path);
    });
  }
  return {files.begin(), files.end()};
}

}  // namespace zs::recording

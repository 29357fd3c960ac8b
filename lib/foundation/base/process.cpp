// SPDX-License-Identifier: Apache-2.0
#include "base/process.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/words.hpp"

extern char** environ;

namespace zs {
namespace {

constexpr int kTooLate = 124, kCannotStart = 126, kNoProgram = 127, kSignal = 128;

/// A file in memory.
class Memory {
 public:
  Memory() : file_(::memfd_create("zs", MFD_CLOEXEC)) {
    if (file_ < 0) throw Error("memfd_create: " + errno_text());
  }

  int file() const { return file_; }
  /// Its whole content.
  std::string text() const {
    std::string bytes;
    std::array<char, 1 << 16> buffer;
    for (ssize_t count; (count = ::pread(file_, buffer.data(), buffer.size(), static_cast<off_t>(bytes.size()))) > 0;)
      bytes.append(buffer.data(), static_cast<std::size_t>(count));
    return bytes;
  }
  void write(const std::function<void(std::FILE*)>& writer) const {
    std::FILE* const stream = ::fdopen(::dup(file_), "w");
    if (!stream) throw Error("fdopen: " + errno_text());
    writer(stream);
    if (std::fclose(stream) != 0 || ::lseek(file_, 0, SEEK_SET) != 0) throw Error("memory file: " + errno_text());
  }

 private:
  Descriptor file_;
};

/// Waits for a child, at most `seconds` unless 0; returns its status as in a shell.
int wait_for(pid_t child, double seconds) {
  bool late = false;
  if (seconds > 0) {
    const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    pollfd ended{process, POLLIN, 0};
    int ready = 0;
    do {
      ready = ::poll(&ended, 1, static_cast<int>(std::ceil(seconds * 1000)));
    } while (ready < 0 && errno == EINTR);
    late = ready == 0;
    if (late) ::kill(child, SIGKILL);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (late) return kTooLate;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignal + WTERMSIG(status);
}

}  // namespace

Ended run(const Program& program) {
  const Memory input, output, errors;
  if (program.input) input.write(program.input);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  sigset_t broken_pipe;  // a program that we start must not ignore it because we do
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &broken_pipe);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  if (program.input) posix_spawn_file_actions_adddup2(&files, input.file(), STDIN_FILENO);
  if (program.captured) {
    posix_spawn_file_actions_adddup2(&files, output.file(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, errors.file(), STDERR_FILENO);
  }
  if (!program.folder.empty()) posix_spawn_file_actions_addchdir_np(&files, program.folder.c_str());
  std::vector<std::string> words = program.words;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failure == EAGAIN || failure == ENOMEM) throw Error(words[0] + ": " + std::string(std::strerror(failure)));
  if (failure != 0) return {failure == ENOENT ? kNoProgram : kCannotStart, "", std::string(std::strerror(failure))};
  const int status = wait_for(child, program.seconds);
  return {status, output.text(), errors.text()};
}

std::string program_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_there(name) ? name : "";
  const char* const variable = std::getenv("PATH");
  for (const std::string& folder : split(variable ? variable : "/usr/local/bin:/usr/bin:/bin", ":")) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (is_file(file) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

Ended run_copy(const std::function<void(int file)>& work) {
  const Memory output;
  const pid_t child = ::fork();
  if (child < 0) throw Error("fork: " + errno_text());
  if (child == 0) {
    try {
      work(output.file());
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  const int status = wait_for(child, 0);
  return {status, output.text(), ""};
}

}  // namespace zs

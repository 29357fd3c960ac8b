// SPDX-License-Identifier: Apache-2.0
#include "recording/command.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/process.hpp"
#include "recording/environment.hpp"

namespace zs::recording {
namespace {

/// $PATH begins with this folder while it lives.
class PathBegin {
 public:
  explicit PathBegin(const std::string& folder) : before_(std::getenv("PATH")) {
    ::setenv("PATH", (folder + ":" + before_).c_str(), 1);
  }
  ~PathBegin() { ::setenv("PATH", before_.c_str(), 1); }
  PathBegin(const PathBegin&) = delete;
  PathBegin& operator=(const PathBegin&) = delete;

 private:
  std::string before_;
};

void write_program(const std::string& path, const std::string& text) {
  write_file(path, text);
  ::chmod(path.c_str(), 0755);
}

sigset_t no_signals() {
  sigset_t set;
  sigemptyset(&set);
  return set;
}

/// What it prints up to `until`, or to its end.
std::string printed(const Command& command, const std::string& until = "") {
  std::string text;
  for (const Command::Stream& stream : command.streams()) {
    std::array<char, 4096> bytes;
    while (until.empty() || text.find(until) == std::string::npos) {
      pollfd ready{stream.from, POLLIN, 0};
      ::poll(&ready, 1, 10000);
      const ssize_t count = ::read(stream.from, bytes.data(), bytes.size());
      if (count <= 0) break;
      text.append(bytes.data(), static_cast<std::size_t>(count));
    }
  }
  return text;
}

TEST_CASE("command: a name is looked up as a shell does") {
  const TemporaryFolder folder, other;
  write_file(folder.file("tool"), "not executable");
  write_program(other.file("tool"), "");
  const PathBegin second(other.path()), first(folder.path());
  CHECK(program_path("tool") == other.file("tool"));
  CHECK(program_path(folder.file("tool")) == folder.file("tool"));  // it cannot be started, which is another fault
  CHECK(program_path(folder.file("none")) == "");
  CHECK(program_path("no-such-command-of-zs") == "");
}

TEST_CASE("command: its end is told as a shell tells it") {
  struct Row {
    const char* script;
    int status;
  };
  for (const auto& [script, status] : {Row{"exit 0", 0}, {"exit 3", 3}, {"kill -TERM $$", 143}, {"kill -9 $$", 137}}) {
    const Command command({"sh", "-c", script}, {}, no_signals());
    CHECK(printed(command) == "");
    const Command::End end = command.wait();
    CHECK(end.status == status);
    CHECK(end.largest_process > 0);
  }
}

TEST_CASE("command: it has our variables, those that are added, and not those that are removed") {
  ::setenv("ZS_TEST_GONE", "1", 1);
  const Command command({"sh", "-c", "echo \"$ZS_TEST_ADDED ${ZS_TEST_GONE-gone} ${PATH:+path}\"; echo err >&2"},
                        {{"ZS_TEST_ADDED", "added"}, {"ZS_TEST_GONE", ""}}, no_signals());
  CHECK(printed(command) == "added gone path\nerr\n");
  command.wait();
  ::unsetenv("ZS_TEST_GONE");
}

TEST_CASE("command: what cannot be started is an error; a script without an interpreter is the shell's") {
  const TemporaryFolder folder;
  write_file(folder.file("data"), "");
  write_program(folder.file("script"), "echo \"script $1\"\n");
  CHECK_THROWS_WITH(Command({"no-such-command-of-zs"}, {}, no_signals()),
                    doctest::Contains("there is no such command"));
  CHECK_THROWS_WITH(Command({folder.file("data")}, {}, no_signals()),
                    doctest::Contains("cannot be started: Permission denied"));
  const Command command({folder.file("script"), "word"}, {}, no_signals());
  CHECK(printed(command) == "script word\n");
  command.wait();
}

TEST_CASE("command: a warning goes to the outermost process that handles it, not to the launcher above") {
  const Command command({"sh", "-c", "sh -c 'trap \"exit 7\" USR1; echo ready; sleep 20 >&- 2>&- & wait'; exit $?"}, {},
                        no_signals());
  printed(command, "ready\n");
  const std::vector<pid_t> below = family(command.process());
  CHECK(below.size() >= 2);
  CHECK(below.front() == command.process());
  CHECK(children(command.process()) == std::vector{below[1]});
  command.warn(SIGUSR1);
  CHECK(command.wait().status == 7);
  const Command plain({"sleep", "20"}, {}, no_signals());
  plain.warn(SIGUSR1);
  CHECK(plain.wait().status == 128 + SIGUSR1);  // none handles it
}

TEST_CASE("command: the files of trackers that a process has open are found, and no others") {
  const TemporaryFolder folder;
  const std::ofstream log(folder.file("run.log")), events(folder.file("events.out.tfevents.1"));
  CHECK(open_tracker_files({::getpid()}) == std::vector{folder.file("events.out.tfevents.1")});
}

TEST_CASE("environment: the Python of a command is the one that it names, or its script's") {
  const TemporaryFolder folder;
  for (const char* const name : {"python3.11", "python"}) write_program(folder.file(name), "");
  write_program(folder.file("torchrun"), "#!" + folder.file("python3.11") + "\n");
  write_program(folder.file("deepspeed"), "#!/usr/bin/env -S python3.11 -u\n");
  write_program(folder.file("pythonic"), "#!/bin/sh\n");
  write_program(folder.file("tool"), "");
  const PathBegin first(folder.path());
  using Words = std::vector<std::string>;
  struct Row {
    Words words;
    std::string python;
  };
  for (const auto& [words, python] : {Row{{"python", "train.py"}, "python"},
                                      {{"env", "A=1", "python3.11", "-m", "x"}, "python3.11"},
                                      {{"torchrun", "--nproc_per_node", "2", "train.py"}, "python3.11"},
                                      {{"deepspeed", "train.py"}, "python3.11"},
                                      {{"pythonic", "x"}, ""},
                                      {{"tool"}, ""}}) {
    CAPTURE(words);
    CHECK(python_of(words) == (python.empty() ? "" : folder.file(python)));
  }
}

}  // namespace
}  // namespace zs::recording

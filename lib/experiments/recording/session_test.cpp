// SPDX-License-Identifier: Apache-2.0
#include "recording/session.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "registry/record.hpp"

namespace zs::recording {
namespace {

/// A recorded command, in a folder of its own: what it printed, what the person was told, and the record of its run.
struct Recorded {
  int status = 0;
  std::string printed{}, told{};
  std::map<std::string, std::string> record{};
};

Recorded recorded(std::vector<std::string> command) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  ::unsetenv("ZS_RUN");
  Recorded made;
  Recording recording;
  recording.command = std::move(command), recording.registry = folder.file("runs");
  recording.tell = recording.warn = [&](const std::string& text) { made.told += text + "\n"; };
  std::fflush(nullptr);
  const int out = ::dup(STDOUT_FILENO), err = ::dup(STDERR_FILENO),
            file = ::open("printed", O_WRONLY | O_CREAT | O_APPEND, 0666);
  ::dup2(file, STDOUT_FILENO), ::dup2(file, STDERR_FILENO);
  made.status = record(recording);
  ::dup2(out, STDOUT_FILENO), ::dup2(err, STDERR_FILENO);
  for (const int each : {out, err, file}) ::close(each);
  std::filesystem::current_path(before);
  made.printed = Input(folder.file("printed")).read_all();
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("runs"), none)) {
    if (!entry.is_directory()) continue;
    for (const auto& [key, text] : registry::read_record(entry.path().string())) made.record[key] = text;
    CHECK(Input(entry.path().string() + "/run.log").read_all() == made.printed);
  }
  return made;
}

TEST_CASE("recording: how a command ended is its run's status, and the reason is told") {
  struct Row {
    std::string script;
    int status;
    std::string state, error, told;
  };
  const std::string two = "echo step 1 loss 2.5; echo step 2 loss 2.25 valid_loss 3 my_metric 7; ";
  for (const auto& [script, status, state, error, told] : std::vector<Row>{
           {two, 0, "complete", "", ", step 2, loss 2.25: "},
           {two + "exit 3", 3, "failed", "exit code 3", "FAILED (exit code 3)"},
           {two + "printf 'Traceback (most recent call last):\\n  File \"a.py\", line 1, in <module>\\nValueError: bad "
                  "batch\\n' >&2; exit 1",
            1, "failed", "ValueError: bad batch", "FAILED (ValueError"},
           {two + "kill -9 $$", 137, "failed", "ended by SIGKILL", "FAILED (ended by SIGKILL)"},
           {"echo step 1 loss 2.5; echo step 2 loss nan", 0, "diverged", "the loss is nan at the end", "DIVERGED"},
           {"true", 0, "complete", "", "COMPLETE"}}) {
    CAPTURE(script);
    Recorded found = recorded({"sh", "-c", script});
    CHECK(found.status == status);
    CHECK(found.record["status"] == state);
    CHECK(found.record["exit_code"] == std::to_string(status));
    CHECK(found.record["error"].substr(0, error.size()) == error);
    CHECK(found.record["error"].empty() == error.empty());
    CAPTURE(found.told);
    CHECK(found.told.find(told) != std::string::npos);
    if (!script.starts_with(two)) continue;
    CHECK(found.record["steps_done"] == "2");
    CHECK(found.record["final_train_loss"] == "2.25");
    CHECK(found.record["final_train_step"] == "2");
    CHECK(found.record["final_valid_loss"] == "3");
    CHECK(found.record["last.my_metric"] == "7");
  }
}

TEST_CASE("recording: a command that is not there makes no run, one that cannot start makes a failed run") {
  Recorded found = recorded({"no-such-command-of-zs"});
  CHECK(found.status == 127);
  CHECK(found.record.empty());
  CHECK(found.told == "no-such-command-of-zs: there is no such command\n");
  const TemporaryFolder folder;
  write_file(folder.file("data"), "");
  found = recorded({folder.file("data")});
  CHECK(found.status == 126);
  CHECK(found.record["status"] == "failed");
  CHECK(found.record["error"] == folder.file("data") + ": cannot be started: Permission denied");
}

TEST_CASE("recording: a process that lives on is told, and its output is not waited for") {
  const Recorded found = recorded({"sh", "-c", "sleep 3 & echo done"});
  CHECK(found.printed == "done\n");
  CHECK(found.told.find("a process that it started lives on") != std::string::npos);
}

}  // namespace
}  // namespace zs::recording

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "attribute/state.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "parse/run.hpp"

namespace zs::parse {
namespace {

/// Why the training of this log failed.
std::string reason_of(const std::string& log) {
  const TemporaryFolder folder;
  write_file(folder.file("a.log"), log);
  Options options;
  options.facts_only = true;
  const metric::Run run = collect(jobs_of({folder.file("a.log")}), options, [](const Fault&) {}).runs.at(0);
  return attribute::reason([&](const char* name) { return run.attribute(name); });
}

constexpr const char* kBoom =
    "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"train.py\", line 9, in <module>\n"
    "[rank1]: RuntimeError: boom in step 7\n";
constexpr const char* kClosed =
    "[rank0]: Traceback (most recent call last):\n"
    "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:1\n";

TEST_CASE("failure: a rank's own error comes before those that follow from it, in whatever order they are printed") {
  const std::string boom = "rank 1: RuntimeError: boom in step 7";
  CHECK(reason_of(kBoom) == boom);
  CHECK(reason_of(std::string(kBoom) + kClosed) == boom);
  CHECK(reason_of(std::string(kClosed) + kBoom) == boom);
  CHECK(reason_of(std::string("srun: error: n1: task 0: Exited with exit code 1\n") + kBoom) == boom);
  CHECK(reason_of(kClosed).starts_with("rank 0: RuntimeError: [gloo"));
  CHECK(reason_of(std::string(kClosed) + "Traceback (most recent call last):\nKeyError: 'x'\n") == "KeyError: 'x'");
}

TEST_CASE("failure: an exception that Python ignores ends no training") {
  const std::string ignored =
      "Exception ignored in: <function Iter.__del__ at 0x7f0>\nTraceback (most recent call last):\n"
      "  File \"train.py\", line 3, in __del__\nAssertionError: can only test a child process\n";
  CHECK(reason_of(ignored + ignored).empty());
  CHECK(reason_of(ignored + "Traceback (most recent call last):\nKeyError: 'x'\n") == "KeyError: 'x'");
  CHECK(reason_of(ignored + "\nDuring handling of the above exception, another exception occurred:\n\n"
                            "Traceback (most recent call last):\nOSError: closed\n") == "");
  CHECK(reason_of(std::string("[rank0]: Exception ignored in: <generator object>\n") + kBoom) ==
        "rank 1: RuntimeError: boom in step 7");
}

TEST_CASE("failure: of several errors that of the rank which torchrun names as the root") {
  const std::string two =
      std::string("[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: late\n") + kBoom;
  CHECK(reason_of(two) == "rank 0: ValueError: late");
  const std::string root =
      "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 7)\n";
  CHECK(reason_of(two + root) == "rank 1: RuntimeError: boom in step 7");
  CHECK(
      reason_of("Root Cause (first observed failure):\n  rank      : 2 (local_rank: 0)\n  exitcode  : -9 (pid: 7)\n") ==
      "rank 2: ended by SIGKILL");
}

TEST_CASE("failure: of an exception that was handled the one of its handler ended the rank") {
  for (const char* const link : {"During handling of the above exception, another exception occurred:",
                                 "The above exception was the direct cause of the following exception:"}) {
    const std::string chained =
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'inner'\n"
        "\n" +
        std::string(link) +
        "\n\n"
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: no data\n";
    CHECK(reason_of(chained) == "ValueError: no data");
    CHECK(reason_of(chained + "Traceback (most recent call last):\nRuntimeError: later\n") == "ValueError: no data");
  }
}

TEST_CASE("failure: launchers and Slurm tell of signals, memory and time; ranks that they end say nothing") {
  const std::string deepspeed =
      "[2026-11-20 04:12:00,123] [ERROR] [launch.py:325:sigkill_handler] ['python'] exits with return code = ";
  CHECK(reason_of(deepspeed + "-9\n") == "ended by SIGKILL");
  CHECK(reason_of(deepspeed + "-15\n" + deepspeed + "3\n") == "exit code 3");
  CHECK(reason_of(
            "mpirun noticed that process rank 1 with PID 0 on node n exited on signal 11 (Segmentation fault).\n") ==
        "rank 1: ended by SIGSEGV");
  const std::string killed = "srun: error: n1: task 0: Killed\n";
  CHECK(reason_of(killed + "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\n") ==
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.");
  CHECK(reason_of("slurmstepd: error: *** STEP 1.0 ON n CANCELLED AT 2026-11-20T04:12:00 ***\n" + std::string(kBoom)) ==
        "rank 1: RuntimeError: boom in step 7");
  CHECK(reason_of("[rank0]:[E626] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\n" +
                  std::string(kBoom)) == "rank 1: RuntimeError: boom in step 7");
  CHECK(reason_of("all went well\n").empty());
}

TEST_CASE("failure: an exception before the line that says that all ended well was caught") {
  const std::string caught = "Traceback (most recent call last):\nValueError: no network\nstep 2 loss 2.4 lr 0.1\n";
  const std::string well = "{'train_runtime': 100.0, 'train_loss': 2.45, 'epoch': 1.0}\n";
  CHECK(reason_of(caught) == "ValueError: no network");
  CHECK(reason_of(caught + well).empty());
  CHECK(reason_of(well + caught) == "ValueError: no network");
  CHECK(reason_of(caught + well + "srun: error: n1: task 0: Exited with exit code 1\n") == "ValueError: no network");
}

}  // namespace
}  // namespace zs::parse

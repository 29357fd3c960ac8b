// SPDX-License-Identifier: Apache-2.0
#include "base/process.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "base/file.hpp"
#include "base/idle.hpp"

namespace zs {

TEST_CASE("a program gets its input and its folder, and what it prints comes back, however much") {
  Program program{{"sh", "-c", "pwd; cat; echo words >&2; exit 3"}};
  program.folder = std::string("/");
  program.captured = true;
  const std::string much(1 << 20, 'x');
  program.input = [&](std::FILE* stream) { std::fputs(much.c_str(), stream); };
  const Ended ended = run(program);
  CHECK(ended.status == 3);
  CHECK(ended.output == "/\n" + much);
  CHECK(ended.errors == "words\n");
}

TEST_CASE("the status tells that a program is missing, cannot start, was killed, or took too long") {
  CHECK(run({{"zs-no-such-program"}}).status == 127);
  CHECK(run({{"/etc/passwd"}}).status == 126);
  CHECK(run({{"sh", "-c", "kill -TERM $$"}}).status == 128 + SIGTERM);
  Program slow{{"sleep", "600"}};
  slow.seconds = 0.05;
  CHECK(run(slow).status == 124);
}

TEST_CASE("idle: a job that was suspended for an hour was not idle for an hour") {
  const Idle::Time begin = std::chrono::steady_clock::now();
  const auto after = [&](int seconds) { return begin + std::chrono::seconds(seconds); };
  Idle idle(begin);
  CHECK(idle.seconds(after(1)) == 1);
  CHECK(idle.seconds(after(3)) == 3);
  CHECK(idle.seconds(after(3603)) == 3 + Idle::kMost);
  CHECK(idle.seconds(after(3605)) == 5 + Idle::kMost);
  idle.restart(after(3606));
  CHECK(idle.seconds(after(3607)) == 1);
}

TEST_CASE("a program that reads nothing harms nobody") {
  Program program{{"true"}};
  program.input = [](std::FILE* stream) { std::fputs(std::string(1 << 20, 'x').c_str(), stream); };
  CHECK(run(program).status == 0);
}

TEST_CASE("a copy of the process gives back what it wrote, also before it crashed") {
  const Ended good = run_copy([](int file) { write_all(file, "answer", "it"); });
  CHECK(good.status == 0);
  CHECK(good.output == "answer");
  CHECK(run_copy([](int) { throw std::runtime_error("no"); }).status == 1);
  const Ended killed = run_copy([](int file) {
    write_all(file, "half", "it");
    ::kill(::getpid(), SIGKILL);
  });
  CHECK(killed.status == 128 + SIGKILL);
  CHECK(killed.output == "half");
}

}  // namespace zs

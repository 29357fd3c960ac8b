// SPDX-License-Identifier: Apache-2.0
// Files that become readable when a signal comes or a second has passed, for poll().
#pragma once
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <optional>

#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace zs::recording {

/// Signals that are passed on to the command; SIGKILL and SIGSTOP cannot be, Ctrl-Z stops both.
inline constexpr std::array kPassed = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

/// From its making on, these signals wait to be read.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kPassed) sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    std::signal(SIGPIPE, SIG_IGN);
    file_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (file_ < 0) throw Error("signalfd: " + errno_text());
  }
  ~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  int file() const { return file_; }
  const sigset_t& before() const { return before_; }
  std::optional<signalfd_siginfo> next() const {
    signalfd_siginfo info{};
    if (::read(file_, &info, sizeof info) != sizeof info) return {};
    return info;
  }

 private:
  sigset_t before_{};
  Descriptor file_;
};

/// Becomes readable once a second.
class Seconds {
 public:
  Seconds() : file_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    const itimerspec each{{1, 0}, {1, 0}};
    if (file_ < 0 || ::timerfd_settime(file_, 0, &each, nullptr) != 0) throw Error("timerfd: " + errno_text());
  }
  int file() const { return file_; }
  bool passed() const {
    std::uint64_t count = 0;
    return ::read(file_, &count, sizeof count) == sizeof count;
  }

 private:
  Descriptor file_;
};

}  // namespace zs::recording

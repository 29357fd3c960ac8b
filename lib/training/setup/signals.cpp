// SPDX-License-Identifier: Apache-2.0
#include "setup/signals.hpp"

#include <csignal>

namespace zs::setup {
namespace {

volatile std::sig_atomic_t asked = 0;

extern "C" void note(int signal) {
  asked = signal;
  if (signal != SIGINT && signal != SIGTERM) return;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

void catch_stop_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) {
    // One that was ignored when the process began stays so: SIGINT in the background of a script, all under nohup.
    if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

int stop_signal() { return asked; }

void ignore_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace zs::setup

// SPDX-License-Identifier: Apache-2.0
#include "train/signals.hpp"

#include <csignal>

namespace zs::train {
namespace {

volatile std::sig_atomic_t asked = 0;

extern "C" void note(int signal) {
  asked = 1;
  if (signal == SIGTERM) std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

void catch_stop_signals() {
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2}) std::signal(signal, note);
}

bool stop_asked() { return asked != 0; }

}  // namespace zs::train

// SPDX-License-Identifier: Apache-2.0
// Signals that make a training save and stop: SIGINT, SIGTERM, SIGUSR1, SIGUSR2. After SIGINT or SIGTERM, a second one
// of these ends the process at once.
#pragma once

namespace zs::setup {

/// From now on these signals only set a flag. Do not call it before the first step: there is nothing to save, and a
/// process that waits for a file should end.
void catch_stop_signals();

/// The number of the last signal that has arrived; 0: none.
int stop_signal();
inline bool stop_asked() { return stop_signal() != 0; }

/// Makes a write to a closed pipe fail instead of ending the process.
void ignore_closed_pipes();

}  // namespace zs::setup

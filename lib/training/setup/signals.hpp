// SPDX-License-Identifier: Apache-2.0
// Signals that ask a training to save and stop: SIGINT, SIGTERM, SIGUSR1, SIGUSR2. After SIGINT or SIGTERM a second one
// of either ends the process at once.
#pragma once

namespace zs::setup {

/// From here on these signals only set a flag. Before the first step there is nothing to save: do not call it sooner,
/// so that a process that waits for a file ends.
void catch_stop_signals();

/// Whether one has come.
bool stop_asked();

/// A pipe that nobody reads is a failed write, not the end of the process.
void ignore_closed_pipes();

}  // namespace zs::setup

// SPDX-License-Identifier: Apache-2.0
// Signals that ask a training to save and stop: SIGTERM, SIGUSR1, SIGUSR2. A second one of SIGTERM ends it at once.
#pragma once

namespace zs::train {

/// From here on these signals only set a flag.
void catch_stop_signals();

/// Whether one has come.
bool stop_asked();

}  // namespace zs::train

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace zs::recording {

/// What a process has started itself and that has not ended, as far as /proc tells.
std::vector<pid_t> children(pid_t process);

/// A process and all that it has started and that has not ended, as far as /proc tells.
std::vector<pid_t> family(pid_t process);

/// Files of W&B and TensorBoard that any of these processes has open.
std::vector<std::string> open_tracker_files(const std::vector<pid_t>& processes);

}  // namespace zs::recording

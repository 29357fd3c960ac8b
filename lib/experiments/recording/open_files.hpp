// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace zs::recording {

/// The live children of a process, as far as /proc shows them.
std::vector<pid_t> children(pid_t process);

/// A process and its live descendants, as far as /proc shows them.
std::vector<pid_t> family(pid_t process);

/// Files of W&B and TensorBoard that these processes have open.
std::vector<std::string> open_tracker_files(const std::vector<pid_t>& processes);

}  // namespace zs::recording

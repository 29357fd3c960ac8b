// SPDX-License-Identifier: Apache-2.0
// The progress of a training from its log, for the person at the terminal.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace zs::experiment {

/// Follows the log of a training until the process `training` has ended, and reports progress: "step 10/100, loss 5.5,
/// 0:00:10 left, 0:01:20 for all". `waiting`: number of trainings that have not ended, including this one; "for all" is
/// shown if there are several, assuming that all take as long. The log may be created later, and be any log that
/// zs-parse reads.
void watch(pid_t training, const std::string& log, std::int64_t waiting,
           const std::function<void(const std::string&)>& tell);

}  // namespace zs::experiment

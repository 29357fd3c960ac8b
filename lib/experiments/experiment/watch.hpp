// SPDX-License-Identifier: Apache-2.0
// How far a training is, as its log tells: for the person at the terminal.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace zs::experiment {

/// Follows the log of a training until the process `training` has ended, and tells what is new in it:
/// "step 10/100, loss 5.5, 0:00:10 left, 0:01:20 for all". `waiting`: trainings that have not ended, this one included;
/// "for all" stands there for more than one, if each takes as long. The log may come to be later. Any log that zs-parse
/// reads will do.
void watch(pid_t training, const std::string& log, std::int64_t waiting,
           const std::function<void(const std::string&)>& tell);

}  // namespace zs::experiment

// SPDX-License-Identifier: Apache-2.0
// Which steps of a training are profiled.
#pragma once
#include <cstdint>
#include <string>

namespace zs::setup {

/// The steps to profile: none where last is 0.
struct ProfiledSteps {
  std::int64_t first = 0, last = 0;
};

/// Whether this LibTorch has PyTorch's profiler (Kineto).
bool has_profiler();

/// "3", "3-5". Throws zs::Error led by `origin`.
ProfiledSteps profiled_steps(const std::string& text, const std::string& origin);

/// The steps of those asked for, or of the usual ones (three behind the warm-up), that a training of the steps
/// `done` + 1 to `steps` has.
ProfiledSteps profiled_steps(const ProfiledSteps& asked, std::int64_t warmup, std::int64_t done, std::int64_t steps);

}  // namespace zs::setup

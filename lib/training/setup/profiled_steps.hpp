// SPDX-License-Identifier: Apache-2.0
// Selects the steps to profile.
#pragma once
#include <cstdint>
#include <string>

namespace zs::setup {

/// The steps to profile: none if last is 0.
struct ProfiledSteps {
  std::int64_t first = 0, last = 0;
};

/// Whether this LibTorch has PyTorch's profiler (Kineto).
bool has_profiler();

/// Parses "3" or "3-5". Throws zs::Error, which begins with `origin`.
ProfiledSteps profiled_steps(const std::string& text, const std::string& origin);

/// The requested steps, or the default ones (three after the warm-up), that are within the steps `done` + 1 to `steps`
/// of a training.
ProfiledSteps profiled_steps(const ProfiledSteps& asked, std::int64_t warmup, std::int64_t done, std::int64_t steps);

}  // namespace zs::setup

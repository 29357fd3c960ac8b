// SPDX-License-Identifier: Apache-2.0
#include "setup/profiled_steps.hpp"

#include <torch/version.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::setup {

namespace {
constexpr std::int64_t kUsualSteps = 3;
}  // namespace

bool has_profiler() { return TORCH_VERSION_MAJOR >= 2; }

ProfiledSteps profiled_steps(const std::string& text, const std::string& origin) {
  const std::size_t dash = text.find('-');
  const auto first = parse_int(text.substr(0, dash));
  const auto last = dash == std::string::npos ? first : parse_int(text.substr(dash + 1));
  if (!first || !last || *first < 1 || *last < *first)
    throw Error(origin + ": '" + text + "' is not a step or range of steps: 3, 10-12");
  return {*first, *last};
}

ProfiledSteps profiled_steps(const ProfiledSteps& asked, std::int64_t warmup, std::int64_t done, std::int64_t steps) {
  ProfiledSteps range = asked;
  if (range.last == 0) {  // the usual ones, or of a short training the last ones
    range.first = std::max(done + 1, std::min(done + warmup + 1, steps - kUsualSteps + 1));
    range.last = range.first + kUsualSteps - 1;
  }
  range.first = std::max(range.first, done + 1);
  range.last = std::min(range.last, steps);
  return range.last < range.first ? ProfiledSteps{} : range;
}

}  // namespace zs::setup

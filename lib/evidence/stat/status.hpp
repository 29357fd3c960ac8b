// SPDX-License-Identifier: Apache-2.0
// The verdict on a run, with its reason.
#pragma once
#include <cstdint>
#include <string>

#include "attribute/state.hpp"
#include "metric/table.hpp"
#include "stat/series.hpp"

namespace zs::stat {

using attribute::RunState;

struct Judgement {
  RunState status;
  std::string reason;  ///< "exit code 137", "loss is nan at step 30 (run.log:42)"; empty when complete
};

/// The first that holds: MISSING, CANCELLED zs-runs determined that the run never began, or that its user cancelled its
/// job; FAILED exit_code is not 0 (1: unless it DIVERGED); DIVERGED a loss is not finite, or exploded; DEAD the
/// parameters cannot have moved: the loss never changes (three points or more), every gradient norm or the learning
/// rate is 0, or every step was skipped; DIVERGED a gradient norm is not finite (with a scaled loss: none is);
/// TRUNCATED the last step is below expected_steps(), or logged steps are missing before it (missing_steps()); COMPLETE
/// all are there, or it says that it finished, or has exit code 0, and not how many steps that takes; UNKNOWN nothing
/// says so.
Judgement judge(const metric::Run& run, const Series& series);

/// The last step of the run, by its points or by its own summary line; metric::kAbsentInteger if unknown.
std::int64_t last_step(const metric::Run& run, const Series& series);

}  // namespace zs::stat

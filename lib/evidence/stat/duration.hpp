// SPDX-License-Identifier: Apache-2.0
// The total time of trainings.
#pragma once
#include "stat/series.hpp"

namespace zs::stat {

/// Seconds of all steps of a run: a logged time also counts for the unlogged steps before it. metric::absent_real() if
/// no step has a time.
double time_of_all_steps(const Series& series);

}  // namespace zs::stat

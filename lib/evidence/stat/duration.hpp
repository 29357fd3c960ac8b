// SPDX-License-Identifier: Apache-2.0
// How long trainings took, one step after another.
#pragma once
#include "stat/series.hpp"

namespace zs::stat {

/// Seconds of all steps of a run: a logged time counts for the steps since the logged one before too.
/// metric::absent_real() where no step has a time.
double time_of_all_steps(const Series& series);

}  // namespace zs::stat

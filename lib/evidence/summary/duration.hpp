// SPDX-License-Identifier: Apache-2.0
// How long trainings took, one step after another.
#pragma once
#include <optional>

#include "summary/condition.hpp"

namespace zs::summary {

/// Seconds of all steps of a run: a logged time counts for the steps since the logged one before too. Nothing where no
/// step has a time.
std::optional<double> all_steps(const Member& member);
/// The mean over the runs of a condition.
std::optional<double> all_steps(const Condition& condition);

}  // namespace zs::summary

// SPDX-License-Identifier: Apache-2.0
// Statistics of the columns of some runs.
#pragma once
#include "base/sheet.hpp"

namespace zs::registry {

/// A row for each nonempty column of `sheet` except run_id: the number of runs that have a value, and of distinct
/// values; for numbers mean, standard deviation (n - 1), minimum, quartiles and maximum of the finite ones, and the
/// number of those not finite; for other values, and for few numbers, the values and how many runs have each, the most
/// frequent first.
Sheet statistics(const Sheet& sheet);

}  // namespace zs::registry

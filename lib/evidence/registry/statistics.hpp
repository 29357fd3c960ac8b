// SPDX-License-Identifier: Apache-2.0
// What the columns of some runs hold as a whole.
#pragma once
#include "base/sheet.hpp"

namespace zs::registry {

/// A row for each column of `sheet` in which a run has a value, but run_id: how many runs have one, and how many values
/// there are; of numbers mean, standard deviation (n - 1), least, quartiles and largest of the finite ones, and how
/// many are not finite; of the others, and of few numbers, which they are and how many runs have each, the most
/// frequent first.
Sheet statistics(const Sheet& sheet);

}  // namespace zs::registry

// SPDX-License-Identifier: Apache-2.0
// Facts about the runs of a condition that are no columns of its summary.
#pragma once
#include <initializer_list>

#include "summary/condition.hpp"

namespace zs::summary {

/// The mean over the runs of a condition that have one of these facts, the first of them; NaN without one.
double mean_fact(const Condition& condition, std::initializer_list<const char*> names);

}  // namespace zs::summary

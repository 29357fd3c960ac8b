// SPDX-License-Identifier: Apache-2.0
// Which steps a run logged, and which of those that it should have logged are not there.
#pragma once
#include <cstddef>
#include <cstdint>

#include "metric/table.hpp"
#include "stat/series.hpp"

namespace zs::stat {

/// Every how many steps the run logs: by its attribute log_interval, else the usual distance of its points (a first
/// point at step 0 or 1 and a last one may lie closer). metric::kAbsentInteger where that is not known: no two points,
/// or no distance that most of them have.
std::int64_t log_interval(const metric::Run& run, const Series& series);

/// Logged steps that are missing before the last one that is there.
struct MissingSteps {
  std::int64_t count = 0;
  std::int64_t first = metric::kAbsentInteger;  ///< the first of them
  const Point* after = nullptr;                 ///< the point before it; null: they are missing at the start
};

/// What is missing at the start (of a resumed run: after its attribute resumed_after_step) and between points.
/// Nothing where log_interval() is not known. The result points into `series`.
MissingSteps missing_steps(const metric::Run& run, const Series& series);

}  // namespace zs::stat

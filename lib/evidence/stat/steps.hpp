// SPDX-License-Identifier: Apache-2.0
// Which steps a run logged, and which of those that it should have logged are not there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "metric/table.hpp"
#include "stat/series.hpp"

namespace zs::stat {

/// Whether the run numbers its micro-steps, as ds_verify_loss does: gradient_accumulation_steps of them are one step of
/// the optimizer. Told by its points, which all lie at multiples of log_interval of the latter.
bool counts_micro_steps(const metric::Run& run, const Series& series);

/// The step that the run should reach, as it numbers them: by its attribute expected_steps, else by bench_step or
/// max_steps. Nothing where none is a believable number.
std::optional<std::int64_t> expected_steps(const metric::Run& run, const Series& series);

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

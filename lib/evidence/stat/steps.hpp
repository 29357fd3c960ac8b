// SPDX-License-Identifier: Apache-2.0
// The logged steps of a run, and the missing ones among the expected steps.
#pragma once
#include <cstdint>
#include <optional>

#include "metric/table.hpp"
#include "stat/series.hpp"

namespace zs::stat {

/// Whether the run numbers its micro-steps, as ds_verify_loss does: gradient_accumulation_steps of them are one step of
/// the optimizer. Detected by its points, which are all at multiples of log_interval optimizer steps.
bool counts_micro_steps(const metric::Run& run, const Series& series);

/// The last step that the run should reach, in its own numbering: attribute expected_steps, else bench_step or
/// max_steps. Nothing if none is a plausible number.
std::optional<std::int64_t> expected_steps(const metric::Run& run, const Series& series);

/// Steps between logged points: attribute log_interval, else the usual distance of points (a first point at step 0 or 1
/// and the last one may be closer). metric::kAbsentInteger if unknown: fewer than two points, or no distance that most
/// of them have.
std::int64_t log_interval(const metric::Run& run, const Series& series);

/// The steps of the points with a loss, in order; of all points if none has one. A validation before the first step is
/// none of the training.
std::vector<std::int64_t> training_steps(const Series& series);

/// The step of the point that would follow the last one, by the interval of the last points.
/// metric::kAbsentInteger if that is unknown.
std::int64_t next_step(const metric::Run& run, const Series& series);

/// Logged steps that are missing before the last logged one.
struct MissingSteps {
  std::int64_t count = 0;
  std::int64_t first = metric::kAbsentInteger;  ///< the first of them
  const Point* after = nullptr;                 ///< the point before it; null: missing at the start
};

/// Finds steps missing at the start (after a resume: after attribute resumed_after_step) and between points: distances
/// beyond log_interval() whose points before and after are denser. A run that logs less often from some step on lacks
/// nothing. Nothing if log_interval() is unknown. The result points into `series`.
MissingSteps missing_steps(const metric::Run& run, const Series& series);

// The total time of trainings.

/// Seconds of all steps of a run: a logged time also counts for the unlogged steps before it. metric::absent_real() if
/// no step has a time.
double time_of_all_steps(const Series& series);

}  // namespace zs::stat

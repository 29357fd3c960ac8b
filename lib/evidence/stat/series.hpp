// SPDX-License-Identifier: Apache-2.0
// The points of a run: one per logged step, without repetitions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metric/table.hpp"
#include "stat/sample.hpp"

namespace zs::stat {

/// One logged step. A missing real is metric::absent_real(), a missing integer metric::kAbsentInteger.
struct Point {
  std::int64_t epoch, step, line;
  double loss, valid_loss, time, comm_bytes, grad_norm;
  double tokens;             ///< or images, if Series::images
  std::size_t time_row = 0;  ///< the row of the records with the time
  bool timed = false;        ///< its time counts in the summary: set by timing(), written by mark_timed()
};

struct Series {
  std::vector<Point> points;        ///< in the order of steps
  std::size_t replaced = 0;         ///< points that a later segment of the run (after a restart) replaced
  std::optional<Point> other_rank;  ///< the first point of another rank with a loss that is not finite
  double peak_mem, alloc_mem;       ///< bytes, the maximum over all ranks and steps; metric::absent_real() if unknown
  std::string loss_unit;            ///< "nats/token"; "nats" if the run counts images
  bool images = false;              ///< the run counts images, not tokens
};

/// The points of a run. If several ranks wrote records, these are the records of the lowest rank, with the maximum
/// memory of all ranks. Rows are identified as in compare/rows.hpp: records of one step are joined, and a later
/// attempt's records replace earlier ones, which are counted.
Series series(const metric::Run& run);

/// Epoch and step of the point, which is the `number`th of its run; {0, number} if it has no step.
std::pair<std::int64_t, std::int64_t> place_of(const Point& point, std::int64_t number);

// Figures of a loss curve. Pure functions of steps and losses, parallel and in order of steps.

/// Exponential moving average with this weight of the past and bias correction: the first value is the first loss.
inline constexpr double kSmoothing = 0.9;
Sample smoothed(const Sample& losses, double weight = kSmoothing);

/// Mean height of the curve: its trapezoidal area, divided by the spanned steps; for one point its loss, for none nan.
/// REQUIRES: the same number of steps and losses.
double mean_height(const std::vector<std::int64_t>& steps, const Sample& losses);

/// The first step with a loss of at most `target`, if there is one.
std::optional<std::int64_t> first_at_most(const std::vector<std::int64_t>& steps, const Sample& losses, double target);

}  // namespace zs::stat

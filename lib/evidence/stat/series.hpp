// SPDX-License-Identifier: Apache-2.0
// A run as the series of its points: one per logged step, whatever the log repeated.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metric/table.hpp"

namespace zs::stat {

/// One logged step. A real that the log did not give is metric::absent_real(), an integer metric::kAbsentInteger.
struct Point {
  std::int64_t epoch, step, line;
  double loss, valid_loss, time, comm_bytes, grad_norm;
  double tokens;             ///< or images, where Series::images says so
  std::size_t time_row = 0;  ///< of the records: the row that gives the time
  bool timed = false;        ///< its time counts in the summary: timing() says so, and mark_timed() writes it down
};

struct Series {
  std::vector<Point> points;        ///< in the order of steps
  std::size_t replaced = 0;         ///< points that a later segment of the run (after a restart) gave again
  std::optional<Point> other_rank;  ///< the first point of another rank whose loss is not finite
  double peak_mem, alloc_mem;       ///< bytes, largest over all ranks and steps; metric::absent_real() where unknown
  std::string loss_unit;            ///< "nats/token"; "nats" of a run that counts images
  bool images = false;              ///< the run counts images, not tokens
};

/// The points of a run. Where several ranks wrote records, those of the lowest rank are taken, but memory is the
/// largest of all. Rows are told apart as in compare/rows.hpp: records of one step are joined, and what a later attempt
/// gave again is replaced, and counted.
Series series(const metric::Run& run);

}  // namespace zs::stat

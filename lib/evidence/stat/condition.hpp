// SPDX-License-Identifier: Apache-2.0
// The unit of comparison: runs that share a name or an attribute, each with its points, its verdict and its timings.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "stat/sample.hpp"
#include "stat/series.hpp"
#include "stat/status.hpp"

namespace zs::stat {

/// Timings that may be left out. They are marked and counted in any case.
enum class Outliers {
  keep,
  above_p99,  ///< above the 99th percentile: always at least the largest, so this makes every run look faster
  far_out,    ///< see far_out() in sample.hpp
};

/// Warm-up of a run that does not specify it.
inline constexpr std::size_t kWarmup = 5;

struct TimingRule {
  /// Timed points to leave out at the start of each run. Nothing: the first steps that the run's own mean leaves out
  /// (attribute timing_warmup, formerly warmup_step), else kWarmup points.
  std::optional<std::size_t> warmup{};
  bool find_warmup = false;  ///< instead: use warmup_length()
  Outliers outliers = Outliers::keep;
};

/// The iteration times of one run after its warm-up.
struct Timing {
  std::size_t given = 0;                 ///< points that have a time
  std::size_t warmup = 0;                ///< left out at the start; never more than given - 1
  std::size_t asked = 0;                 ///< points that the rule leaves out, before that limit
  std::size_t marked = 0;                ///< outliers among the rest
  std::size_t removed = 0;               ///< of these: left out
  Sample seconds;                        ///< the remaining times
  double tokens = 0, token_seconds = 0;  ///< sums over the remaining points if both are known; or images (Series)
};

/// Also sets whether each point is timed.
Timing timing(const metric::Run& run, Series& series, const TimingRule& rule);

/// Writes the column "timed" into the records: 1 for times that count, 0 for the others.
void mark_timed(metric::Run& run, const Series& series);

struct Member {
  const metric::Run* run;
  Series series;
  Judgement judgement;
  Timing timing;
};

struct Condition {
  std::string name;
  std::vector<Member> members;
};

/// The unit of the runs' losses; "nats/token" if no run has one, "nats" if units differ.
std::string loss_unit(const std::vector<Condition>& conditions);

/// The runs as conditions, in order of first appearance: by name, repetitions by what they repeat (attribute
/// repetition_of), or by equal values of the attributes `by`, named after that value ("KEY=VALUE KEY=VALUE" for several
/// keys; "(none)" without). Throws Error if no run has such an attribute. `store` must outlive the result.
std::vector<Condition> conditions(const metric::Store& store, const std::vector<std::string>& by,
                                  const TimingRule& rule);

}  // namespace zs::stat

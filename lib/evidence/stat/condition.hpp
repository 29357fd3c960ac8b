// SPDX-License-Identifier: Apache-2.0
// What is compared: runs that share a name or an attribute, each with its points, its verdict and its timings.
#pragma once
#include <cstddef>
#include <cstdint>
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
  above_p99,  ///< those above the 99th percentile: always at least the largest, so this makes every run look faster
  far_out,    ///< see far_out() in sample.hpp
};

/// Warm-up of a run that does not say its own.
inline constexpr std::size_t kWarmup = 5;

struct TimingRule {
  /// Timed points left out at the start of each run. Nothing: those of the first steps that the run's own mean leaves
  /// out (attribute timing_warmup, once warmup_step), kWarmup points where it says nothing.
  std::optional<std::size_t> warmup{};
  bool find_warmup = false;  ///< instead: warmup_length() finds it
  Outliers outliers = Outliers::keep;
};

/// The iteration times of one run after its warm-up.
struct Timing {
  std::size_t given = 0;                 ///< points that have a time
  std::size_t warmup = 0;                ///< left out at the start; never more than given - 1
  std::size_t asked = 0;                 ///< points to leave out, before that
  std::size_t marked = 0;                ///< outliers among the rest
  std::size_t removed = 0;               ///< of these, left out
  Sample seconds;                        ///< what is left
  double tokens = 0, token_seconds = 0;  ///< summed over what is left, where both are known; or images (Series)
};

/// Says of each point whether it is timed, too.
Timing timing(const metric::Run& run, Series& series, const TimingRule& rule);

/// Writes into the records, as column "timed", which times count: 1, and 0 for the others.
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

/// What the losses of the runs are in, "nats/token" where none says: "nats" where they are not in one unit.
std::string loss_unit(const std::vector<Condition>& conditions);

/// The runs as conditions, in order of first appearance: one each by name, or those that share the values of the
/// attributes `by`, named by that value (by "KEY=VALUE KEY=VALUE" where there are several keys; "(none)" without).
/// Throws Error where no run has such an attribute. `store` must outlive the result.
std::vector<Condition> conditions(const metric::Store& store, const std::vector<std::string>& by,
                                  const TimingRule& rule);

}  // namespace zs::stat

// SPDX-License-Identifier: Apache-2.0
// The input of a condition's figures: its runs, and shared intermediate results.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "stat/condition.hpp"
#include "stat/sample.hpp"

namespace zs::stat {

struct SummaryRule {
  std::vector<std::string> by;  ///< attributes that group runs; empty: every run is a condition
  TimingRule timing;
  Deviation deviation = Deviation::sample;
  std::optional<double> target{};      ///< a loss: steps_to_target is the step that reached it
  std::uint64_t seed = 1;              ///< of the bootstrap
  std::vector<std::string> columns{};  ///< the user's additional columns; see stat/columns.hpp
};

/// A condition with the data of its figures. With several runs the mean of a time is the mean of the runs' means, and
/// its interval follows from their spread: points of one run are not independent repetitions.
struct Work {
  Work(const Condition& condition, const SummaryRule& rule);

  const Condition& condition;
  const SummaryRule& rule;
  std::size_t points = 0;
  std::int64_t last_step = metric::kAbsentInteger;
  Sample losses;                                     ///< of all points
  Sample firsts, finals, valids, smoothed, heights;  ///< of each run with a loss: first, last, ...
  Sample reached;                                    ///< the first step of each run that reached the target
  Sample times;                                      ///< of all points that count
  Sample rates;                                      ///< tokens per second of each point that counts
  Sample durations;                                  ///< time_of_all_steps() of each run
  Sample means;                                      ///< of the times, for each run; of a single run its times
  Interval mean_rounds, median_rounds;               ///< of times, by bootstrap
  metric::Table curve;                               ///< as curve() makes it
  double efficiency = metric::absent_real();         ///< see find_efficiencies()

  const Member& worst() const;
  /// The sum of a count over the runs.
  template <typename Count>
  std::int64_t sum(Count count) const {
    std::size_t total = 0;
    for (const Member& member : condition.members) total += count(member);
    return static_cast<std::int64_t>(total);
  }
};

/// Sets `efficiency`: tokens (or images) per second and rank, divided by the value of the condition with the fewest
/// ranks among the conditions that differ from it only in world_size. Absent if all of these have the same number of
/// ranks.
void find_efficiencies(std::vector<Work>& works);

double or_absent(const Sample& values, double value);
/// `value`, or absent if it is nan.
double finite_or_absent(double value);
/// The mean, if there are at least `fewest` values.
double mean_of(const Sample& values, std::size_t fewest = 1);
/// A size as the integer type of tables.
constexpr std::int64_t count(std::size_t number) { return static_cast<std::int64_t>(number); }
/// A real that is a count, such as bytes, rounded; absent stays absent.
std::int64_t rounded(double value);

/// The largest over the runs.
double largest(const Condition& condition, double Series::*member);
/// Tokens, or images, per second: of the runs that count them, else the mean of what runs log.
double rate(const Condition& condition, bool images);
/// The tokens, or else samples, per second that a run logs: as it says at its end, else the median; nan if it logs
/// none.
double logged_rate(const metric::Run& run, bool tokens);
/// Bytes that a rank sends per step: the median over the points, since a step that evaluates or saves sends more.
double comm_bytes(const Condition& condition);
/// Tokens of one step, if all points agree.
double tokens_per_step(const Condition& condition);
/// The final digest of all runs, or "" if they differ or one has none.
std::string state_digest(const Condition& condition);
/// Why the status is not COMPLETE, with the run if there are several.
std::string reason(const Work& work);
/// An attribute as a number, if all runs share it.
std::int64_t shared_integer(const Condition& condition, const std::string& key);
/// The last value of a run: its loss, its validation loss; absent if it has none.
double last_of(const Series& series, double Point::*value);

}  // namespace zs::stat

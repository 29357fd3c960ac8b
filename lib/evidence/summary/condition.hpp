// SPDX-License-Identifier: Apache-2.0
// The rows of a summary as values with names: what figures and reports are made of. Statistics are those of the
// summary: nothing here computes one.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribute/difference.hpp"
#include "metric/table.hpp"
#include "stat/sample.hpp"
#include "stat/series.hpp"

namespace zs::summary {

/// One run of a condition: its records, and what the summary's table "runs" says about it.
struct Member {
  const metric::Run* run = nullptr;  ///< owned by the store
  attribute::Facts facts;            ///< its attributes under their primary names
  stat::Series series;               ///< its records, a point for each step: where numbers came from
  std::string status, reason;        ///< as those of a condition
  std::size_t time_given = 0, warmup_points = 0, time_outliers = 0, time_removed = 0, time_points = 0;
  std::optional<double> final_loss, peak_mem;                        ///< in Condition::loss_unit, bytes
  std::optional<double> time_mean, time_median, time_min, time_max;  ///< s, of what warm-up and outliers left

  /// Neither COMPLETE nor UNKNOWN.
  bool bad() const;
  /// The iteration times that the summary's statistics are made of, in order of steps.
  stat::Sample times() const;
};

/// One row of a summary; what is absent there has no value here.
struct Condition {
  std::string name;
  std::string status;     ///< COMPLETE FAILED DIVERGED DEAD MISSING CANCELLED TRUNCATED UNKNOWN
  std::size_t place = 0;  ///< row in the summary
  std::optional<std::int64_t> runs, points, final_step, time_points, peak_mem, alloc_mem, comm_bytes;
  std::optional<double> first_loss, final_loss, best_loss, mean_loss, valid_loss;
  std::optional<double> final_loss_low, final_loss_high;  ///< 95 % interval over the runs
  std::optional<double> time_mean, time_median, time_std, time_low, time_high, tokens_per_second, images_per_second;
  std::string loss_unit;  ///< of all conditions of a summary: "nats/token", or "nats" where runs train on images
  std::string state_digest;
  std::string reason;                    ///< why the status is not COMPLETE: "exit code 137"; "" where nothing says it
  std::vector<Member> members;           ///< the runs it came from; none where the store does not hold them
  const metric::Table* curve = nullptr;  ///< owned by the store; null without one

  /// Neither COMPLETE nor UNKNOWN.
  bool bad() const;
  /// The attribute, by any of its names, where all members that have it agree; "" where none has it or they differ.
  std::string attribute(const std::string& key) const;
  /// The value of each run that has it.
  std::vector<double> values(std::optional<double> Member::*value) const;
};

/// `store` with a summary: as it is if it has one, else made as zs-aggregate does by default. Appends what the user
/// should know to `warnings`.
metric::Store summarized(metric::Store store, std::vector<std::string>& warnings);

/// The conditions of a summary in its order. `store` must outlive them.
/// Throws Error if the store has no summary, or its summary no column "condition", naming `source`.
std::vector<Condition> conditions(const metric::Store& store, const std::string& source);

/// The model that all conditions with values say they train; "several models" where they name two, else "".
std::string model(const std::vector<Condition>& conditions);

/// What conditions get through in a second.
struct Speed {
  std::string noun;    ///< "tokens", or "images" where no condition counts tokens
  std::string column;  ///< of the summary
  std::optional<double> Condition::*value;
};
Speed speed(const std::vector<Condition>& conditions);
/// What their losses are in.
std::string loss_unit(const std::vector<Condition>& conditions);
/// Every one that has a speed counts images.
bool on_images(const std::vector<Condition>& conditions);

/// The condition of that name; "" is the first. Throws UsageError, naming the nearest.
const Condition& baseline(const std::vector<Condition>& conditions, const std::string& name);

/// Whether the curves and the digests of conditions are equal, by the comparison that the table "divergence" is made
/// by.
struct Agreement {
  bool curves = false;  ///< at least two conditions have curves, and at every step that several logged, the same loss
  bool same_steps = false;  ///< all curves have the same steps
  bool digests = false;     ///< at least two conditions have a digest, and all of those are equal
  std::size_t with_curve = 0, with_digest = 0;
  std::string digest;  ///< the common one, where digests agree
};
Agreement agreement(const std::vector<Condition>& conditions);

}  // namespace zs::summary

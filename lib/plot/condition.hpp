// SPDX-License-Identifier: Apache-2.0
// The rows of a summary as values with names: what figures and reports are made of.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "stat/condition.hpp"

namespace zs::plot {

/// One row of a summary; what is absent there has no value here.
struct Condition {
  std::string name;
  std::string status;     ///< COMPLETE FAILED DIVERGED TRUNCATED DEAD UNKNOWN
  std::size_t place = 0;  ///< row in the summary: its colour in every figure
  std::optional<std::int64_t> runs, points, final_step, time_points, peak_mem, alloc_mem, comm_bytes;
  std::optional<double> first_loss, final_loss, best_loss, mean_loss, valid_loss;
  std::optional<double> time_mean, time_median, time_std, time_low, time_high, tokens_per_second;
  std::string state_digest;
  std::string reason;  ///< why the status is not COMPLETE: "exit code 137"; "" when it is, or nobody said
  std::vector<stat::Member> members;  ///< the runs it came from, owned by the store; none where it does not hold them
  const metric::Table* curve = nullptr;  ///< owned by the store; null without one

  /// FAILED, DIVERGED, TRUNCATED or DEAD.
  bool bad() const;
  /// The attribute where all members that have it agree; "" where none has it or they differ.
  std::string attribute(const std::string& key) const;
};

/// `store` with a summary: as it is if it has one, else made as zs-aggregate does by default. Appends what the user
/// should know to `warnings`.
metric::Store summarized(metric::Store store, std::vector<std::string>& warnings);

/// The conditions of a summary in its order. `store` must outlive them.
/// Throws Error if the store has no summary, or its summary no column "condition", naming `source`.
std::vector<Condition> conditions(const metric::Store& store, const std::string& source);

/// Whether the curves and the digests of conditions are equal.
struct Agreement {
  bool curves = false;  ///< at least two conditions have curves, and at every step that several logged, the same loss
  bool same_steps = false;  ///< all curves have the same steps
  bool digests = false;     ///< at least two conditions have a digest, and all of those are equal
  std::size_t with_curve = 0, with_digest = 0;
  std::string digest;  ///< the common one, where digests agree
};
Agreement agreement(const std::vector<Condition>& conditions);

}  // namespace zs::plot

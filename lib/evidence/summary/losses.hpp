// SPDX-License-Identifier: Apache-2.0
// The results of zs-aggregate for pairs of conditions, from the table "divergence" of a summary.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "summary/condition.hpp"

namespace zs::summary {

/// One row of the table; see stat/divergence.hpp.
struct Pair {
  std::string condition, baseline;
  std::optional<std::int64_t> steps, steps_missing, first_difference, difference_step, first_outside;
  /// In Condition::loss_unit; nan if a loss is.
  std::optional<double> loss_difference, envelope, outside_difference, outside_spread;
  std::string differs_in, digest, verdict;

  bool of(const std::string& a, const std::string& b) const {
    return (condition == a && baseline == b) || (condition == b && baseline == a);
  }
};

/// All rows; none if the summary has no such table.
std::vector<Pair> pairs(const metric::Store& store);

/// The comparison of the loss curves of several conditions, pair by pair.
struct Losses {
  bool compared = false;                   ///< the summary has the table
  bool with_first_alone = false;           ///< each condition is compared only with the first: there are many
  std::size_t pairs = 0;                   ///< pairs with a common step that has a loss
  std::size_t apart = 0;                   ///< pairs without one
  std::size_t fewest_steps = 0;            ///< the smallest number of common steps of a pair
  bool equal = false;                      ///< the curves of all pairs have the same steps and the same bits
  std::optional<std::int64_t> first_step;  ///< the first where a loss of a pair differs
  std::vector<Pair> differing;             ///< the pairs whose losses differ
  std::string first_in;                    ///< which: "loss", "loss, rank 1"
  std::string beside;                      ///< another column that differs if losses do not: "grad_norm from step 1"
  /// The largest difference of a pair at one step.
  struct Largest {
    const Condition *a = nullptr, *b = nullptr;
    std::int64_t step = 0;
    double loss_a = 0, loss_b = 0;
    double difference = 0;  ///< in Condition::loss_unit; nan where a loss is not finite
    double relative = 0;    ///< relative to the smaller magnitude
  };
  std::optional<Largest> largest;  ///< nothing if the mean curves are equal
  /// The decimals of the less precise side of the largest difference, if that is at most one unit of the last decimal,
  /// and each pair differs up as well as down: all losses are equal up to the rounding of their text.
  std::optional<int> printed;
  std::vector<Pair> outside;       ///< whose losses differ by more than chance makes of repeated runs
  std::optional<double> envelope;  ///< the largest spread of repeated runs of one condition; nothing without repeats
};

/// Compares the healthy ones among `conditions` conditions. They must outlive the result.
Losses losses(const metric::Store& store, const std::vector<const Condition*>& healthy, std::size_t conditions);

}  // namespace zs::summary

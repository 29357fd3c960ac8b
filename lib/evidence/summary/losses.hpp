// SPDX-License-Identifier: Apache-2.0
// What zs-aggregate found about pairs of conditions, from the table "divergence" of a summary.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "summary/condition.hpp"

namespace zs::summary {

/// One row of the table, as stat/divergence.hpp describes it.
struct Pair {
  std::string condition, baseline;
  std::optional<std::int64_t> steps, steps_missing, first_difference, difference_step, first_outside;
  std::optional<double> loss_difference, envelope;  ///< in Condition::loss_unit; nan where a loss is
  std::string differs_in, digest, verdict;

  bool of(const std::string& a, const std::string& b) const {
    return (condition == a && baseline == b) || (condition == b && baseline == a);
  }
};

/// All rows; none where the summary has no such table.
std::vector<Pair> pairs(const metric::Store& store);

/// What the loss curves of several conditions show, pair by pair.
struct Losses {
  bool compared = false;                   ///< the summary has the table
  bool with_first_alone = false;           ///< each condition is compared with the first alone: there are many
  std::size_t pairs = 0;                   ///< that share a step with a loss
  std::size_t apart = 0;                   ///< that share none
  std::size_t fewest_steps = 0;            ///< that a pair shares
  bool equal = false;                      ///< the curves of all pairs have the same steps and the same bits
  std::optional<std::int64_t> first_step;  ///< the first at which a loss of a pair differs
  std::string first_in;                    ///< which: "loss", "loss, rank 1"
  std::string beside;                      ///< what differs where they do not: "grad_norm from step 1"
  /// The largest difference of a pair at one step.
  struct Largest {
    const Condition *a = nullptr, *b = nullptr;
    std::int64_t step = 0;
    double loss_a = 0, loss_b = 0;
    double difference = 0;  ///< in Condition::loss_unit; nan where a loss is not finite
    double relative = 0;    ///< of the smaller magnitude
  };
  std::optional<Largest> largest;  ///< nothing where the mean curves are equal
  /// The decimals of the coarser side of the largest difference, where that is no more than one unit of the last one:
  /// all losses are equal up to the rounding of their print.
  std::optional<int> printed;
  /// The loss of a pair of conditions differs by more than repeated runs of one do.
  struct Outside {
    std::string condition, baseline;
    std::int64_t step = 0;
  };
  std::vector<Outside> outside;
  std::optional<double> envelope;  ///< the widest that repeated runs of one condition part; nothing without repeats
};

/// Of the healthy ones among `conditions` in all. They must outlive the result.
Losses losses(const metric::Store& store, const std::vector<const Condition*>& healthy, std::size_t conditions);

}  // namespace zs::summary

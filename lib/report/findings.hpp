// SPDX-License-Identifier: Apache-2.0
// What a batch shows, before it is put into words: who failed, whether the bits agree, where losses part,
// what is fastest, and whether the intervals support it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribute/difference.hpp"
#include "metric/table.hpp"
#include "summary/condition.hpp"

namespace zs::report {

using summary::Condition;

/// The runs that end with one digest, by their conditions.
struct DigestGroup {
  std::string digest;
  std::vector<const Condition*> members;  ///< each once
};

/// Runs that train the same thing in the same arithmetic, and so must end with the same bits.
struct DigestClass {
  attribute::Facts decides, arithmetic;  ///< what makes the class: the facts of these roles
  attribute::Facts facts;                ///< all of one of its runs
  std::size_t runs = 0;
  std::vector<DigestGroup> groups;  ///< in order of appearance

  /// What is trained is known: a run that does not say its model is not known to train what another does.
  bool known() const;
};

/// What the loss curves of healthy conditions show, pair by pair, from the table "divergence" of the summary.
struct Losses {
  bool compared = false;                   ///< the summary has that table
  bool with_first_alone = false;           ///< each condition is compared with the first alone: there are many
  std::size_t pairs = 0;                   ///< that share a step with a loss
  std::size_t apart = 0;                   ///< that share none
  std::size_t fewest_steps = 0;            ///< that a pair shares
  bool equal = false;                      ///< the curves of all pairs have the same steps and the same bits
  std::optional<std::int64_t> first_step;  ///< the first at which the curves of a pair differ
  std::string beside;                      ///< what differs where they do not: "grad_norm from step 1"
  /// The largest difference of a pair at one step.
  struct Largest {
    const Condition *a = nullptr, *b = nullptr;
    std::int64_t step = 0;
    double loss_a = 0, loss_b = 0;
    double difference = 0;  ///< nats/token; nan where a loss is not finite
    double relative = 0;    ///< of the smaller magnitude
  };
  std::optional<Largest> largest;
};

/// The condition with the smallest value, and those that the data cannot tell from it.
struct Best {
  const Condition* winner = nullptr;
  const Condition* next = nullptr;      ///< the second smallest; null when there is only one
  std::vector<const Condition*> level;  ///< others whose interval overlaps the winner's (or with no interval)
  std::size_t compared = 0;             ///< conditions with a value
  bool intervals = false;               ///< every compared one has an interval
};

struct Findings {
  Findings() = default;
  Findings(Findings&&) = default;  // a copy would point into the original
  Findings(const Findings&) = delete;

  std::vector<Condition> conditions;
  std::vector<const Condition*> bad, unknown, healthy;  ///< by status; unknown: nobody knows whether it is complete
  std::vector<DigestClass> digests;                     ///< of healthy conditions, in order of appearance
  std::vector<const Condition*> without_digest;         ///< healthy ones of which a run has none
  std::vector<attribute::Difference> unlike;            ///< what decides or rounds, and differs between the classes
  std::vector<DigestGroup> shared;                      ///< digests with which runs of several classes end
  std::string unlike_work;  ///< why the times and memories of healthy conditions are not of like with like; or ""
  Losses losses;
  Best time, memory;  ///< among healthy conditions
  Best loss;          ///< final loss, among healthy conditions; intervals where each ran at least twice
  /// Digests of runs that are known to train the same thing in the same arithmetic differ: a fault.
  bool digests_differ() const;
  /// At least two runs trained the same thing and have a digest.
  bool digests_compared() const;
  /// Digests differ between runs of which nobody knows what they train.
  bool digests_unjudged() const;
  /// The loss of a pair of conditions differs by more than repeated runs of one do: name, name, step. From the table
  /// "divergence" of the summary.
  struct Outside {
    std::string condition, baseline;
    std::int64_t step = 0;
  };
  std::vector<Outside> outside;
  std::optional<double> envelope;  ///< the widest that repeated runs of one condition part; nothing without repeats
};

/// `store` must outlive the findings. Throws Error as summary::conditions does, and if the summary has no row.
Findings findings(const metric::Store& store, const std::string& source);

}  // namespace zs::report

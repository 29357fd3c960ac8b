// SPDX-License-Identifier: Apache-2.0
// What a batch shows, before it is put into words: who failed, whether the bits agree, where losses part,
// what is fastest, and whether the intervals support it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "metric/table.hpp"
#include "plot/condition.hpp"
#include "plot/figure.hpp"

namespace zs::report {

using plot::Condition;

/// The runs that end with one digest, by their conditions.
struct DigestGroup {
  std::string digest;
  std::vector<const Condition*> members;  ///< each once
};

/// Runs that train the same thing, and so must end with the same bits.
struct DigestClass {
  std::map<std::string, std::string> trained;  ///< seed, model, ...: what makes the class
  std::size_t runs = 0;
  std::vector<DigestGroup> groups;  ///< in order of appearance
};

/// Where two loss curves are furthest apart, over the steps they share.
struct Gap {
  const Condition *a = nullptr, *b = nullptr;
  std::int64_t step = 0;
  double loss_a = 0, loss_b = 0;
  double relative = 0;           ///< |a - b| / smaller of the two magnitudes; nan where one is not finite
  std::int64_t first_step = 0;   ///< the first shared step where any two differ
  std::size_t shared_steps = 0;  ///< steps that all curves share
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
  std::vector<std::string> unlike;  ///< attributes of what is trained (seed, model, ...) on which the classes differ
  std::optional<Gap> gap;           ///< the largest; nothing when fewer than two healthy curves share a step
  bool equal_losses = false;        ///< at least two healthy curves, all of the same values at every step
  Best time, memory;                ///< among healthy conditions
  Best loss;                        ///< final loss, among healthy conditions; intervals where each ran at least twice
  /// Digests of runs that trained the same thing differ.
  bool digests_differ() const;
  /// At least two runs trained the same thing and have a digest.
  bool digests_compared() const;
  /// The loss of a pair of conditions differs by more than repeated runs of one do: name, name, step. From the table
  /// "divergence" of the summary.
  struct Outside {
    std::string condition, baseline;
    std::int64_t step = 0;
  };
  std::vector<Outside> outside;
  std::optional<double> envelope;  ///< the widest that repeated runs of one condition part; nothing without repeats
};

/// `store` must outlive the findings. Throws Error as plot::conditions does, and if the summary has no row.
Findings findings(const metric::Store& store, const std::string& source);

}  // namespace zs::report

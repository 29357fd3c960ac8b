// SPDX-License-Identifier: Apache-2.0
// What a batch shows, before it is put into words: who failed, whether the bits agree, where losses part,
// what is fastest, and whether the intervals support it.
#pragma once
#include <string>
#include <vector>

#include "attribute/difference.hpp"
#include "metric/table.hpp"
#include "stat/alike.hpp"
#include "summary/losses.hpp"

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
  std::vector<std::string> outliers;                    ///< runs that stand out among like ones; stat/outlier.hpp
  std::vector<stat::Alike> kinds;                       ///< groups of like conditions, by their first runs
  std::string unlike_work;  ///< why the times and memories of healthy conditions are not of like with like; or ""
  summary::Losses losses;   ///< of healthy conditions
  Best time, memory;        ///< among healthy conditions
  Best loss;                ///< final loss, among healthy conditions; intervals where each ran at least twice
  /// So many conditions of several kinds that one sentence about all of them says nothing.
  bool mixed() const { return conditions.size() > kMany && kinds.size() > 1 && !unlike_work.empty(); }
  static constexpr std::size_t kMany = 16;
  /// Digests of runs that are known to train the same thing in the same arithmetic differ: a fault.
  bool digests_differ() const;
  /// At least two runs trained the same thing and have a digest.
  bool digests_compared() const;
  /// Digests differ between runs of which nobody knows what they train.
  bool digests_unjudged() const;
};

/// `store` must outlive the findings. Throws Error as summary::conditions does, and if the summary has no row.
Findings findings(const metric::Store& store, const std::string& source);

}  // namespace zs::report

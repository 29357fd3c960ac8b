// SPDX-License-Identifier: Apache-2.0
// The findings about a batch, before they are put into words: which conditions failed, whether the bits agree, where
// losses diverge, which is fastest, and whether the intervals support it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "attribute/difference.hpp"
#include "metric/table.hpp"
#include "stat/alike.hpp"
#include "summary/losses.hpp"

namespace zs::report {

using summary::Condition;

/// Runs with the same final digest, by their conditions.
struct DigestGroup {
  std::string digest;
  std::vector<const Condition*> members;  ///< each once
};

/// Runs that train the same thing in the same arithmetic, and so must end with the same bits.
struct DigestClass {
  attribute::Facts decides, arithmetic;  ///< the facts of these roles, which define the class
  attribute::Facts facts;                ///< all facts of one of its runs
  std::size_t runs = 0;
  std::vector<DigestGroup> groups;  ///< in order of appearance

  /// Whether the training is known: a run without a model may train something else.
  bool known() const;
};

/// The condition with the smallest value, and those that are not significantly different.
struct Best {
  const Condition* winner = nullptr;
  const Condition* next = nullptr;      ///< the second smallest; null if there is only one
  std::vector<const Condition*> level;  ///< others whose interval overlaps the winner's (or with no interval)
  std::size_t compared = 0;             ///< conditions with a value
  bool intervals = false;               ///< every compared one has an interval
};

struct Findings {
  Findings() = default;
  Findings(Findings&&) = default;  // a copy would point into the original

  std::vector<Condition> conditions;
  std::vector<const Condition*> bad, unknown, healthy;  ///< by status; unknown: it is unclear whether it is complete
  std::vector<DigestClass> digests;                     ///< of healthy conditions, in order of appearance
  std::vector<const Condition*> without_digest;         ///< healthy ones with a run that has none
  std::vector<attribute::Difference> unlike;            ///< what decides or rounds, and differs among classes
  std::vector<DigestGroup> shared;                      ///< digests shared by runs of several classes
  std::vector<std::string> outliers;                    ///< outliers among similar runs; stat/outlier.hpp
  std::vector<stat::Alike> kinds;                       ///< groups of similar conditions: their places in `conditions`
  std::string unlike_work;  ///< why the times and memories of healthy conditions cannot be compared fairly; or ""
  std::string recordings;   ///< the verdict on the conditions' recordings, "exact"; "" if there are none
  summary::Losses losses;   ///< of healthy conditions
  Best memory;              ///< among healthy conditions
  Best time, loss;          ///< the loss is the final one; with intervals if each ran at least twice
  /// There are too many conditions of several kinds for one sentence about all of them.
  bool mixed() const { return conditions.size() > kMany && kinds.size() > 1 && !unlike_work.empty(); }
  static constexpr std::size_t kMany = 16;
  bool recorded_equal() const { return recordings == "exact" || recordings == "equal up to rounding"; }
  /// Digests of runs that certainly train the same thing in the same arithmetic differ: a fault.
  bool digests_differ() const;
  /// At least two runs trained the same thing and have a digest.
  bool digests_compared() const;
  /// Digests differ between runs whose training is unknown.
  bool digests_unjudged() const;
};

/// How much of each kind of conditions is so: "titan_* (50), 2 of hf_* (50)"; "" for none.
std::string shares_of_kinds(const Findings& found, const std::function<bool(const Condition&)>& is);

/// `store` must outlive the findings. Throws Error as summary::conditions does, and if the summary has no row.
Findings findings(const metric::Store& store, const std::string& source);

}  // namespace zs::report

// SPDX-License-Identifier: Apache-2.0
// The rows of a summary as named values for figures and reports. Statistics come from the summary.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "attribute/difference.hpp"
#include "metric/table.hpp"
#include "stat/sample.hpp"
#include "stat/series.hpp"
#include "stat/summary_columns.hpp"
#include "summary/figures.hpp"

namespace zs::summary {

/// One run of a condition: its records, and its row of the summary's table "runs".
struct Member : Figures<stat::kRunColumns> {
  const metric::Run* run = nullptr;  ///< owned by the store
  attribute::Facts facts;            ///< its attributes under their primary names
  std::string status, reason;        ///< as in a condition

  /// Neither COMPLETE nor UNKNOWN.
  bool bad() const;
  /// Its records, a point per step, with their sources. Read on first use.
  const stat::Series& series() const;

 private:
  mutable std::optional<stat::Series> series_;
};

/// One row of a summary.
struct Condition : Figures<stat::kSummaryColumns> {
  std::string name;
  std::string status;     ///< a word of attribute/state.hpp
  std::size_t place = 0;  ///< row index in the summary
  std::string loss_unit;  ///< common to all conditions of a summary: "nats/token", or "nats" for images
  std::string state_digest;
  std::string reason;                    ///< why the status is not COMPLETE: "exit code 137"; "" if unknown
  std::vector<Member> members;           ///< its runs; none if the store does not have them
  const metric::Table* curve = nullptr;  ///< owned by the store; null if there is none

  /// Neither COMPLETE nor UNKNOWN.
  bool bad() const;
  /// The attribute, by any of its names, if all members that have it agree; "" otherwise.
  std::string attribute(const std::string& key) const;
  /// The value of each run that has it.
  std::vector<double> values(Member::Column column) const;
  /// Its runs that have a mean time, several logs of one (attribute "run") as one; all of them if the store does not
  /// have them.
  std::size_t timed_runs() const;
};

/// The conditions of a summary in its order. `store` must outlive them. Throws Error, naming `source`, if the store has
/// no summary, or its summary no column "condition".
std::vector<Condition> conditions(const metric::Store& store, const std::string& source);

/// The common model of all conditions that name one; "several models" if they differ, else "".
std::string model(const std::vector<Condition>& conditions);

/// The throughput of conditions: tokens, or images if no condition counts tokens.
Condition::Column speed(const std::vector<Condition>& conditions);
/// The unit of their losses.
std::string loss_unit(const std::vector<Condition>& conditions);
/// Whether every condition with a speed counts images.
bool on_images(const std::vector<Condition>& conditions);

/// The condition with that name; "" is the first. Throws UsageError with the nearest name.
const Condition& baseline(const std::vector<Condition>& conditions, const std::string& name);

/// Whether the curves and the digests of conditions are equal, by the same comparison as the table "divergence".
struct Agreement {
  bool curves = false;      ///< at least two conditions have curves, and their losses are equal at every common step
  bool same_steps = false;  ///< all curves have the same steps
  bool digests = false;     ///< at least two conditions have a digest, and all digests are equal
  std::size_t with_curve = 0, with_digest = 0;
  std::string digest;  ///< the common one, if digests agree
};
Agreement agreement(const std::vector<Condition>& conditions);

/// The mean over the runs of a condition that have one of these facts, the first of them; NaN without one.
double mean_fact(const Condition& condition, std::initializer_list<const char*> names);

}  // namespace zs::summary

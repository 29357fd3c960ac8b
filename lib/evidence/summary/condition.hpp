// SPDX-License-Identifier: Apache-2.0
// The rows of a summary as values with names: what figures and reports are made of. Statistics are those of the
// summary: nothing here computes one.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "attribute/difference.hpp"
#include "metric/table.hpp"
#include "stat/sample.hpp"
#include "stat/series.hpp"
#include "stat/summary_columns.hpp"

namespace zs::summary {

/// The figures of one row of a summary's table, by the names of its columns: row["time_mean"], which the compiler
/// checks. What is absent there has no value.
template <const auto& kColumns>
class Figures {
 public:
  using Column = stat::Place<kColumns>;

  Figures() { values_.fill(metric::absent_real()); }
  std::optional<double> operator[](Column column) const {
    const double value = values_[column.at];
    return metric::is_absent(value) ? std::nullopt : std::optional(value);
  }
  /// A count; 0 where there is none.
  std::size_t count(Column column) const {
    const double value = values_[column.at];
    return value > 0 ? static_cast<std::size_t>(value) : 0;
  }
  void set(Column column, double value) { values_[column.at] = value; }
  void read(const metric::Table& table, std::size_t row);

 private:
  std::array<double, kColumns.size()> values_;
};

/// One run of a condition: its records, and its row of the summary's table "runs".
struct Member : Figures<stat::kRunColumns> {
  const metric::Run* run = nullptr;  ///< owned by the store
  attribute::Facts facts;            ///< its attributes under their primary names
  std::string status, reason;        ///< as those of a condition

  /// Neither COMPLETE nor UNKNOWN.
  bool bad() const;
  /// Its records, a point for each step: where numbers came from. They are read when somebody first asks.
  const stat::Series& series() const;

 private:
  mutable std::optional<stat::Series> series_;
};

/// One row of a summary.
struct Condition : Figures<stat::kSummaryColumns> {
  std::string name;
  std::string status;     ///< a word of attribute/state.hpp
  std::size_t place = 0;  ///< row in the summary
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
  std::vector<double> values(Member::Column column) const;
};

/// Gives a summary that an older zs-aggregate wrote its columns "timed" and "time_total", by its table "runs" and its
/// runs. REQUIRES: store.summary.
void mark_timed(metric::Store& store);

/// The conditions of a summary in its order. `store` must outlive them.
/// Throws Error if the store has no summary, or its summary no column "condition", naming `source`.
std::vector<Condition> conditions(const metric::Store& store, const std::string& source);

/// The model that all conditions with values say they train; "several models" where they name two, else "".
std::string model(const std::vector<Condition>& conditions);

/// What conditions get through in a second: tokens, or images where no condition counts tokens.
Condition::Column speed(const std::vector<Condition>& conditions);
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

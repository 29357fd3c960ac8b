// SPDX-License-Identifier: Apache-2.0
#include "compare/rows.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "base/number.hpp"
#include "compare/records.hpp"

namespace zs::compare {
namespace {

using metric::is_absent;
using metric::kAbsentInteger;

/// A column of whole numbers; absent if it is missing or text.
class Integers {
 public:
  Integers(const metric::Table& table, const char* name) : column_(table.find(name)) {
    if (column_ && column_->type() == metric::Type::text) column_ = nullptr;
  }
  std::int64_t operator[](std::size_t row) const {
    if (!column_) return kAbsentInteger;
    if (column_->type() == metric::Type::integer) return column_->integers()[row];
    const double value = column_->real(row);
    return is_absent(value) || !(std::fabs(value) < 9e15) ? kAbsentInteger : static_cast<std::int64_t>(value);
  }

 private:
  const metric::Column* column_;
};

using Time = std::tuple<std::int64_t, std::int64_t>;  // epoch and step

/// The state of a rank while the table is read.
struct Rank {
  std::map<Time, std::size_t> standing;  ///< rows that no restart has replaced
  std::size_t latest = 0;                ///< the row of the last one that has a step
  std::int64_t attempt = 1, epoch = kAbsentInteger;
  std::map<std::int64_t, std::int64_t> counts;  ///< by epoch, of rows without a step
};

/// The epochs by their first steps, where steps go on from one epoch to the next; nothing where each epoch has step 1.
std::optional<std::map<std::int64_t, std::int64_t>> by_step(const Integers& steps, const Integers& epochs,
                                                            std::size_t rows) {
  std::map<std::int64_t, std::int64_t> found;
  for (std::size_t row = 0; row < rows; ++row) {
    if (is_absent(steps[row]) || is_absent(epochs[row])) continue;
    if (found.emplace(steps[row], epochs[row]).first->second != epochs[row]) return {};
  }
  std::int64_t last = kAbsentInteger;
  for (const auto& [step, epoch] : found) {
    if (!is_absent(last) && epoch < last) return {};
    last = epoch;
  }
  return found;
}

/// The rows of `earlier` that have a value which neither `row` nor a later one of them has: a step that comes again
/// ever more often keeps a few.
std::vector<std::size_t> still_valid(const metric::Table& table, const std::vector<std::size_t>& earlier,
                                     std::size_t row) {
  std::vector<bool> known;
  for (const metric::Column& column : table.columns) known.push_back(!column.absent(row));
  std::vector<std::size_t> kept;
  for (auto at = earlier.rbegin(); at != earlier.rend(); ++at) {
    bool needed = false;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (known[i] || table.columns[i].absent(*at)) continue;
      known[i] = needed = true;
    }
    if (needed) kept.push_back(*at);
  }
  std::ranges::reverse(kept);
  return kept;
}

}  // namespace

bool Place::same_step(const Place& other) const {
  return std::tie(epoch, step, count, rank) == std::tie(other.epoch, other.step, other.count, other.rank);
}

std::string to_text(const Place& place) {
  std::string text;
  if (!is_absent(place.epoch)) text = "epoch " + to_text(place.epoch) + ", ";
  text += is_absent(place.step) ? "row " + to_text(place.count) + " without a step" : "step " + zs::to_text(place.step);
  if (place.rank != 0) text += ", rank " + to_text(place.rank);
  if (place.attempt != 1) text += ", attempt " + to_text(place.attempt);
  return text;
}

std::vector<Row> rows(const metric::Table& table, bool epochs) {
  const Integers steps(table, "step"), ranks(table, "rank");
  const Integers epoch_column(table, epochs ? "epoch" : "");
  std::vector<const metric::Column*> values;
  for (const std::string& name : decided()) {
    const metric::Column* const column = table.find(name);
    if (column && name != "epoch") values.push_back(column);
  }
  std::int64_t lowest = kAbsentInteger;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!is_absent(ranks[row]) && (is_absent(lowest) || ranks[row] < lowest)) lowest = ranks[row];
  }
  if (is_absent(lowest)) lowest = 0;

  std::vector<Row> made;
  std::map<std::int64_t, Rank> known;
  std::int64_t last_epoch = kAbsentInteger;
  const auto first_steps = by_step(steps, epoch_column, table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Place place;
    place.rank = is_absent(ranks[row]) ? lowest : ranks[row];
    Rank& rank = known[place.rank];
    if (!is_absent(epoch_column[row])) last_epoch = rank.epoch = epoch_column[row];
    place.epoch = is_absent(rank.epoch) ? last_epoch : rank.epoch;
    place.step = steps[row];
    if (first_steps && !is_absent(place.step)) {  // also where a restart repeats steps of before the first epoch's row
      const auto behind = first_steps->upper_bound(place.step);
      place.epoch = behind == first_steps->begin() ? kAbsentInteger : std::prev(behind)->second;
    }
    if (is_absent(place.step)) {
      place.count = ++rank.counts[place.epoch];
      made.push_back({place, {row}});
      continue;
    }
    std::vector<std::size_t> earlier;
    const Time time{place.epoch, place.step};
    // Only a step that comes again was trained again: logs of several writers may have theirs in another order.
    if (const auto same = rank.standing.find(time); same != rank.standing.end()) {
      if (same->second == rank.latest) {
        Row& last = made[rank.latest];
        // A repeated loss was computed again; other values may only have been logged again.
        const bool repeated = std::ranges::any_of(values, [&](const metric::Column* column) {
          const auto before = column->absent(row) ? std::nullopt : cell(*column, last);
          return before && (column->name.ends_with("loss") || column->text(row) != column->text(*before));
        });
        if (!repeated) {
          last.rows.push_back(row);
          continue;
        }
        earlier = still_valid(table, last.rows, row);  // values that the repeated record lacks
      }
      ++rank.attempt;
      for (auto later = same; later != rank.standing.end(); ++later) made[later->second].replaced = true;
      rank.standing.erase(same, rank.standing.end());
    }
    place.attempt = rank.attempt;
    rank.latest = made.size();
    rank.standing.emplace(time, made.size());
    earlier.push_back(row);
    made.push_back({place, std::move(earlier)});
  }
  return made;
}

std::optional<std::size_t> cell(const metric::Column& column, const Row& row) {
  const auto found =
      std::find_if(row.rows.rbegin(), row.rows.rend(), [&](std::size_t at) { return !column.absent(at); });
  if (found == row.rows.rend()) return {};
  return *found;
}

}  // namespace zs::compare

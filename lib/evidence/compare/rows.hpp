// SPDX-License-Identifier: Apache-2.0
// The rows of a run, identified by attempt, epoch, step and rank: steps that a log repeats after a restart are kept
// apart from the earlier ones, and nothing is overwritten.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/number.hpp"
#include "metric/table.hpp"

namespace zs::compare {

struct Place {
  /// The epoch of the row. A row without one: if steps go on from epoch to epoch, that of the nearest lower step that
  /// has one; if each epoch begins with step 1, that of the last row before.
  std::int64_t epoch = metric::kAbsentInteger;
  std::int64_t step = metric::kAbsentInteger;
  std::int64_t count = 0;    ///< for rows without a step: the ordinal in its epoch and rank, from 1
  std::int64_t rank = 0;     ///< if the row has none: the lowest rank of the run, else 0
  std::int64_t attempt = 1;  ///< of its rank; a rank that repeats a step was restarted

  auto operator<=>(const Place&) const = default;
  /// Whether it is equal except for the attempt.
  bool same_step(const Place& other) const;
};

/// "step 20", "epoch 2, step 20, rank 1, attempt 2": usual values are omitted.
std::string to_text(const Place& place);
using zs::to_text;  // of numbers

/// Records of one step: a log may have the loss in one line and the norm in the next.
struct Row {
  Place place;
  std::vector<std::size_t> rows;  ///< rows of the table; if two have a value, the later one wins
  bool replaced = false;          ///< a later attempt repeated this step or an earlier one
};

/// All rows in the order of the table. Without `epochs` the column epoch is ignored.
std::vector<Row> rows(const metric::Table& table, bool epochs = true);

/// The row of the table that has the value of `column` in `row`; nothing if none has.
std::optional<std::size_t> cell(const metric::Column& column, const Row& row);

}  // namespace zs::compare

// SPDX-License-Identifier: Apache-2.0
// The rows of a run, each known by attempt, epoch, step and rank: what a log repeats after a restart is told apart from
// what it had before, and nothing is overwritten.
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
  std::int64_t epoch = metric::kAbsentInteger;  ///< of the row, else of the last row before that had one
  std::int64_t step = metric::kAbsentInteger;
  std::int64_t count = 0;    ///< of rows without a step: the how manieth of its epoch and rank, from 1
  std::int64_t rank = 0;     ///< where the row has none: the lowest that the run has, else 0
  std::int64_t attempt = 1;  ///< of its rank; a rank that repeats a step was restarted

  auto operator<=>(const Place&) const = default;
  /// Whether it is the same but for the attempt.
  bool same_step(const Place& other) const;
};

/// "step 20", "epoch 2, step 20, rank 1, attempt 2": what is not usual is told.
std::string to_text(const Place& place);
using zs::to_text;  // of numbers

/// Records of one step: a log may give the loss in one line and the norm in the next.
struct Row {
  Place place;
  std::vector<std::size_t> rows;  ///< of the table; where two give a value, the later one counts
  bool replaced = false;          ///< a later attempt repeated this step or an earlier one
};

/// All rows in the order of the table. Without `epochs` the column epoch is not looked at.
std::vector<Row> rows(const metric::Table& table, bool epochs = true);

/// The row of the table that gives `column` its value in `row`; nothing where none does.
std::optional<std::size_t> cell(const metric::Column& column, const Row& row);

}  // namespace zs::compare

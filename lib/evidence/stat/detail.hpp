// SPDX-License-Identifier: Apache-2.0
// The further columns of a summary, behind those that everybody reads.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "metric/table.hpp"
#include "stat/condition.hpp"
#include "stat/row.hpp"

namespace zs::stat {

struct DetailRule {
  std::optional<double> target;  ///< a loss: steps_to_target says when it was reached
  std::uint64_t seed = 1;        ///< of the bootstrap
};

/// How times are spread, what was left out, the course of the loss, spread between runs, world size, ideal memory.
void write_details(RowWriter& row, const Condition& condition, const DetailRule& rule);

/// Adds the column scaling_efficiency: tokens (or images) per second and rank, over that of the condition with the
/// fewest ranks among those that differ from it in world_size alone. REQUIRES: `summary` has a row per condition, in
/// order.
void add_scaling(metric::Table& summary, const std::vector<Condition>& conditions);

}  // namespace zs::stat

// SPDX-License-Identifier: Apache-2.0
// What a ZeRO stage divides among the ranks. All code that wants to know asks here: no other compares a stage with a
// number.
//
//   stage               0        1          2          3
//   optimizer state     whole    divided    divided    divided
//   gradients           whole    whole      divided    divided    between the micro-steps
//   parameters          whole    whole      whole      divided    between their uses
#pragma once
#include <array>
#include <cstdint>

namespace zs::plan {

struct Shape;

inline constexpr std::array kStages = {0, 1, 2, 3};
constexpr bool is_stage(std::int64_t number) { return number >= kStages.front() && number <= kStages.back(); }

struct Division {
  bool optimizer_state = false, gradients = false, parameters = false;
};

constexpr Division divided_by(std::int64_t stage) { return {stage >= 1, stage >= 2, stage >= 3}; }
/// A rank's share of what is divided among `ranks`, or is not.
constexpr double share(double whole, bool divided, double ranks) { return divided ? whole / ranks : whole; }

/// What of a shape's model state a rank has a slice of in memory. On one rank that is nothing, but for parameters that
/// come and go: they are partitioned twice or travel as integers, or, with `shards_move`, a store has them at times.
Division divided_in_memory(const Shape& shape, bool shards_move);

}  // namespace zs::plan

// SPDX-License-Identifier: Apache-2.0
// The state that a ZeRO stage divides among the ranks. All code uses this table: no other code compares a stage with a
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
/// A rank's share of state that is divided among `ranks`, or not.
constexpr double share(double whole, bool divided, double ranks) { return divided ? whole / ranks : whole; }

/// The parts of a shape's model state of which a rank keeps only a slice in memory. On one rank there are none, except
/// parameters that come and go: they are partitioned twice or quantized, or, with `shards_move`, stored at times.
Division divided_in_memory(const Shape& shape, bool shards_move);

}  // namespace zs::plan

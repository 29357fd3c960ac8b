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

namespace zs::stage {

inline constexpr std::array kStages = {0, 1, 2, 3};
constexpr bool is_stage(std::int64_t number) { return number >= kStages.front() && number <= kStages.back(); }

struct Division {
  bool optimizer_state = false, gradients = false, parameters = false;
};

constexpr Division divided_by(std::int64_t stage) { return {stage >= 1, stage >= 2, stage >= 3}; }

}  // namespace zs::stage

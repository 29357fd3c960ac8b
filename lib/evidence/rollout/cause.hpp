// SPDX-License-Identifier: Apache-2.0
// Why a generator and a trainer differ: relations that are tested against each other, and parts of the tokens that
// differ while others do not.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rollout/estimate.hpp"

namespace zs::rollout {

/// The size of |d| that rounding explains.
struct Floor {
  double mean = 0, p99 = 0;
  std::string said;   ///< "of bfloat16"
  double free = 0.5;  ///< mean 1 - p of the tokens that it is of; of a type: of usual tokens
};
/// Of a type: "F32", "BF16", "F16". Any other is taken for bfloat16.
Floor floor_of(const std::string& dtype);

/// The means of |d| of two kinds of tokens: "padding", "padded rows 0.03, others 5e-07".
struct Partition {
  std::string name, text;
};

/// The least sum of 1 - p over tokens that show how far logits move: those that are certain show nothing of it.
constexpr double kFree = 16;

struct Cause {
  std::string relation;  ///< "" if rounding explains the difference
  std::string tested;    ///< each relation that was tested and the mean |d| that it leaves
  std::vector<Partition> partitions{};
};

/// REQUIRES: tokens that differ. `exact_types`: both sides are known to compute in float32.
Cause cause_of(const Tokens& tokens, const Estimate& estimate, const Floor& floor, bool exact_types);

/// Parts of the tokens that differ while the others do not: they name what only these tokens have.
struct Parts {
  std::vector<Partition> shown{};
  std::string relation;  ///< of the partition that tells best; "" if none does
};

Parts parts_of(const Tokens& tokens, const Floor& floor);

/// The mean |d| of the tokens of each key, of each step.
std::map<std::int64_t, double> mean_by(const Tokens& tokens, const std::function<std::int64_t(const Token&)>& key);
std::map<std::int64_t, double> mean_by_step(const Tokens& tokens);

}  // namespace zs::rollout

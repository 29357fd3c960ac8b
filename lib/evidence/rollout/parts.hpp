// SPDX-License-Identifier: Apache-2.0
// Parts of the tokens that differ while the others do not: they name what only these tokens have.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rollout/cause.hpp"

namespace zs::rollout {

struct Parts {
  std::vector<Partition> shown{};
  std::string relation;  ///< of the partition that tells best; "" if none does
};

Parts parts_of(const Tokens& tokens, const Floor& floor);

/// The mean |d| of the tokens of each key, of each step.
std::map<std::int64_t, double> mean_by(const Tokens& tokens, const std::function<std::int64_t(const Token&)>& key);
std::map<std::int64_t, double> mean_by_step(const Tokens& tokens);

}  // namespace zs::rollout

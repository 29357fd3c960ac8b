// SPDX-License-Identifier: Apache-2.0
// Parts of the tokens that differ while the others do not: they name what only these tokens have.
#pragma once
#include <string>
#include <vector>

#include "rollout/cause.hpp"

namespace zs::rollout {

struct Parts {
  std::vector<Partition> shown{};
  std::string relation;  ///< of the partition that tells best; "" if none does
};

Parts parts_of(const Tokens& tokens, const Floor& floor);

/// The mean |d| of the tokens in the first (0), second or last (2) third of the longest completion.
double mean_of_third(const Tokens& tokens, int third);

}  // namespace zs::rollout

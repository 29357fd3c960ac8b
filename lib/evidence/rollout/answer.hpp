// SPDX-License-Identifier: Apache-2.0
// The result of zs-verify for log-probabilities of a generator and a trainer.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "compare/verdict.hpp"

namespace zs::rollout {

struct Answer {
  compare::Settled verdict{};
  std::vector<std::pair<std::string, std::string>> lines;  ///< key and text, the verdict first
};

/// Reads a dump of both sides, or with `b` two of one side each. `floor`: the dump of a healthy training, whose
/// differences are the bound; or "". Throws Error, located, for a damaged dump and for one that lacks a side.
Answer compare(const std::string& a, const std::string& b, const std::string& floor);

}  // namespace zs::rollout

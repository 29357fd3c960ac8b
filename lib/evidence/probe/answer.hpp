// SPDX-License-Identifier: Apache-2.0
// What zs-verify says of two probes.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compare/measure.hpp"
#include "compare/verdict.hpp"

namespace zs::probe {

struct Answer {
  compare::Settled verdict{};
  std::vector<std::pair<std::string, std::string>> lines;  ///< key and text, the verdict first
};

/// REQUIRES: version() of both is 2. Throws Error where a record is damaged.
/// Steps up to `after` are not compared.
Answer compare(const std::string& a, const std::string& b, const compare::Tolerance& tolerance, std::int64_t after = 0);

}  // namespace zs::probe

// SPDX-License-Identifier: Apache-2.0
// What zs-verify says of two probes.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compare/measure.hpp"
#include "compare/verdict.hpp"
#include "probe/diagnosis.hpp"

namespace zs::probe {

struct Answer {
  compare::Settled verdict{};
  std::vector<std::pair<std::string, std::string>> lines;  ///< key and text, the verdict first
  std::int64_t steps = 0;                                  ///< compared
  bool apart = false;                                      ///< something is beyond rounding, or proves nothing
  bool ended = false;                                      ///< B's training has
  Map map{};
};

/// REQUIRES: version() of both is 2. Throws Error where a record is damaged.
/// Steps up to `after` are not compared. `floor`: a probe that says what rounding may do, or "".
Answer compare(const std::string& a, const std::string& b, const compare::Tolerance& tolerance, std::int64_t after = 0,
               const std::string& floor = "");

}  // namespace zs::probe

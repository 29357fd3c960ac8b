// SPDX-License-Identifier: Apache-2.0
// What zs-verify says of two probes.
#pragma once
#include <cstdint>
#include <optional>
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

/// The same of B that is still written: A and the floor are read once, and of B each time what was added.
class Live {
 public:
  Live(std::string a, std::string b, const compare::Tolerance& tolerance, std::string floor);
  const Run& reference() const { return a_; }
  Answer compare();

 private:
  std::string name_a_, name_b_, name_floor_;
  Run a_;
  std::optional<Run> floor_;
  Growing b_;
  compare::Tolerance tolerance_;
};

}  // namespace zs::probe

// SPDX-License-Identifier: Apache-2.0
// The results of a condition by which a sweep can be judged.
#pragma once
#include <string>
#include <vector>

#include "summary/condition.hpp"

namespace zs::summary {

struct Result {
  Condition::Column column;
  std::string name{column.row().name};
  std::string label;  ///< words and unit for people

  /// nan if the condition has none.
  double of(const Condition& condition) const;
  /// With its unit, unless that is clear.
  std::string text(double value) const;
  /// True if `a` is better than `b`; a finite value is better than one that is not.
  bool better(double a, double b) const;
};

/// The result with that name, its label with the unit of these conditions; "" is valid_loss if all conditions that did
/// not fail and have a loss have one, else final_loss. Throws UsageError at an unknown name.
Result result(const std::string& name, const std::vector<Condition>& conditions);

/// The condition with the best finite value among those that did not fail; null if there is none.
const Condition* best_of(const std::vector<Condition>& conditions, const Result& result);

/// The distinct values of an attribute, numbers by size, then words by letter; a condition without it counts as "-".
std::vector<std::string> levels(const std::vector<Condition>& conditions, const std::string& key);

}  // namespace zs::summary

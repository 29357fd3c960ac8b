// SPDX-License-Identifier: Apache-2.0
// The results of a condition that a sweep can be judged by.
#pragma once
#include <string>
#include <vector>

#include "summary/condition.hpp"

namespace zs::summary {

struct Result {
  Condition::Column column;
  std::string name{column.row().name};
  std::string label;  ///< words and unit for people

  /// nan where the condition has none.
  double of(const Condition& condition) const;
  /// With its unit, where that is not clear.
  std::string text(double value) const;
  /// True if `a` is a better value than `b`; anything finite is better than what is not.
  bool better(double a, double b) const;
};

/// The result of that name, its label with the unit of these conditions; "" is valid_loss where a condition has one,
/// else final_loss. Throws UsageError at an unknown name.
Result result(const std::string& name, const std::vector<Condition>& conditions);

/// The condition with the best finite value among those that did not fail; null without one.
const Condition* best_of(const std::vector<Condition>& conditions, const Result& result);

/// The different values of an attribute, numbers by size, then words by letter; a condition without it counts as "-".
std::vector<std::string> levels(const std::vector<Condition>& conditions, const std::string& key);

}  // namespace zs::summary

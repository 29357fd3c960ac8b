// SPDX-License-Identifier: Apache-2.0
// The differences between the conditions of a summary.
#pragma once
#include <string>
#include <vector>

#include "attribute/difference.hpp"
#include "summary/condition.hpp"

namespace zs::summary {

/// The attributes in which any two runs of the conditions differ, with their roles.
std::vector<attribute::Difference> differences(const std::vector<const Condition*>& conditions);

/// The varied settings: attributes that a user set (no outcomes, no facts about the machine) and that differ between
/// conditions, under their primary names and in the table's order. If only facts found by the run differ, these are
/// used. An attribute that groups the conditions exactly like an earlier one is left out: it follows from that one;
/// where each condition has its own value, only if the values are the same.
std::vector<std::string> parameters(const std::vector<Condition>& conditions);

/// Why a comparison of time or memory is unfair: the conditions' steps do not compute the same ("layers (2 and 4)"), or
/// a model is unknown; "" if it is fair.
std::string unlike_work(const std::vector<const Condition*>& conditions);

}  // namespace zs::summary

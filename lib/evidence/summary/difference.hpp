// SPDX-License-Identifier: Apache-2.0
// In what the conditions of a summary differ.
#pragma once
#include <string>
#include <vector>

#include "attribute/difference.hpp"
#include "summary/condition.hpp"

namespace zs::summary {

/// The attributes in which any two runs of the conditions differ, with their roles.
std::vector<attribute::Difference> differences(const std::vector<const Condition*>& conditions);

/// What was varied: the attributes that somebody set (no outcomes, no facts about the machine) and that differ between
/// conditions, under their primary names and in the table's order. Where only facts that a run finds out differ, those.
/// An attribute that groups the conditions exactly as one before it does is left out: it follows from that one.
std::vector<std::string> parameters(const std::vector<Condition>& conditions);

/// Why a comparison of time or memory is none of like with like: conditions whose steps do not compute the same
/// ("layers (2 and 4)"), or whose model nobody knows; "" where the comparison is fair.
std::string unlike_work(const std::vector<const Condition*>& conditions);

}  // namespace zs::summary

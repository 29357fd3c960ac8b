// SPDX-License-Identifier: Apache-2.0
// The inputs of a parameter's update: the options of its group, and the optimizer's step counter.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compare/verdict.hpp"
#include "probe/diagnosis.hpp"

namespace zs::probe {

/// Groups of two sides that hold a parameter in common, by their numbers. Recordings that do not say what a group holds
/// are paired by number.
std::vector<std::pair<std::size_t, std::size_t>> paired(const std::vector<Group>& a, const std::vector<Group>& b);

/// An option that two groups do not have alike. `verdict`: rounding if numbers are within 1e-6, inconclusive if one
/// side lacks it or has another class of optimizer, else different.
struct OptionApart {
  std::string key, text;  ///< text: "0.001 for 0.01", "true for false"
  compare::Verdict verdict;
};
/// Leaves out options that only change how an update is computed: foreach, fused.
std::vector<OptionApart> options_apart(const Group& a, const Group& b);

/// Whether an option of the group says what a release of PyTorch does that does not have this option yet.
bool implied(const Group& group, const std::string& key);

/// For each parameter the number of steps that the optimizer counts, as a text, and the group that holds it.
std::map<std::string, std::string> counters(const Step& step);
std::map<std::string, const Group*> groups_of(const Step& step);

/// The first option or counter that differs: rates before others. The relation is the whole sentence.
std::optional<Finding> options_apart(std::int64_t step, const Side& a, const Side& b);

/// Whether two layouts record alike: another layout, number of ranks or size of an axis has some things that the other
/// has not.
bool alike(const Run& a, const Run& b);

}  // namespace zs::probe

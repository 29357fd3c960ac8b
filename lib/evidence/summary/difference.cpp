// SPDX-License-Identifier: Apache-2.0
#include "summary/difference.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace zs::summary {
namespace {

/// For each condition, the index of the first one with the same value.
std::vector<std::size_t> grouping(const std::vector<Condition>& conditions, const std::string& key) {
  std::map<std::string, std::size_t> first;
  std::vector<std::size_t> groups;
  for (const Condition& condition : conditions)
    groups.push_back(first.try_emplace(condition.attribute(key), groups.size()).first->second);
  return groups;
}

bool is_found(const std::string& key) {
  const attribute::Attribute* const row = attribute::find(key);
  return row && row->found;
}

}  // namespace

std::vector<attribute::Difference> differences(const std::vector<const Condition*>& conditions) {
  std::vector<const attribute::Facts*> runs;
  for (const Condition* const condition : conditions) {
    for (const Member& member : condition->members) runs.push_back(&member.facts);
  }
  return attribute::differences(runs);
}

std::vector<std::string> parameters(const std::vector<Condition>& all_conditions) {
  // If one never began, only its command is known.
  std::vector<Condition> conditions = all_conditions;
  std::erase_if(conditions,
                [](const Condition& condition) { return condition.status == name(attribute::RunState::missing); });
  std::set<std::string> names;
  for (const Condition& condition : conditions) {
    for (const Member& member : condition.members) {
      for (const auto& [key, value] : member.facts) {
        if (attribute::role(key) <= attribute::Role::layout) names.insert(key);
      }
    }
  }
  std::vector<std::string> varied;
  for (const std::string& name : attribute::in_order({names.begin(), names.end()})) {
    const std::vector<std::size_t> groups = grouping(conditions, name);
    if (std::ranges::any_of(groups, [](std::size_t group) { return group > 0; })) varied.push_back(name);
  }
  if (!std::ranges::all_of(varied, is_found)) std::erase_if(varied, is_found);
  std::vector<std::string> kept;
  std::set<std::vector<std::size_t>> groupings;
  for (const std::string& name : varied) {
    const std::vector<std::size_t> groups = grouping(conditions, name);
    const bool each_its_own = std::set<std::size_t>(groups.begin(), groups.end()).size() == conditions.size();
    const auto same = [&](const std::string& earlier) {  // "lr" of a command line, which is training.learning_rate
      return std::ranges::all_of(conditions,
                                 [&](const Condition& c) { return c.attribute(earlier) == c.attribute(name); });
    };
    const bool places = std::ranges::all_of(  // a file made for each run is no setting of its own
        conditions, [&](const Condition& c) { return c.attribute(name).starts_with('/'); });
    if (places && each_its_own && !kept.empty()) continue;
    if (groupings.insert(groups).second || (each_its_own && std::ranges::none_of(kept, same))) kept.push_back(name);
  }
  return kept;
}

std::string unlike_work(const std::vector<const Condition*>& conditions) {
  std::vector<attribute::Difference> some;
  for (attribute::Difference& one : differences(conditions)) {
    const attribute::Attribute* const row = attribute::find(one.name);
    // A layout that decides: ranks or batches whose global batch is not known.
    const bool batch = row && row->role == attribute::Role::layout && one.role == attribute::Role::decides;
    if (row && (row->work || batch)) some.push_back(std::move(one));
  }
  if (!some.empty()) return "they differ in " + attribute::text(some);
  for (const Condition* const condition : conditions) {
    if (condition->attribute("model.name").empty() && condition->attribute("model.parameters").empty())
      return "the model of " + condition->name + " is not known";
  }
  return "";
}

}  // namespace zs::summary

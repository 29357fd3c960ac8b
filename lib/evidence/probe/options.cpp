// SPDX-License-Identifier: Apache-2.0
#include "probe/options.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::probe {
namespace {

using compare::Verdict;

/// How an update is computed, and what a framework calls a group: what it computes is compared itself.
const std::set<std::string> kWays{"foreach", "fused", "capturable", "differentiable", "name", "is_expert_parallel",
                                  "package", "tags"};

constexpr double kNear = 1e-6;  // relative: a rate that two schedules compute in other orders

std::string shown(const Option& option) {
  if (option.numbers.empty()) return option.text;
  const std::string text = joined(option.numbers, ", ", [](double value) { return to_text(value); });
  return option.numbers.size() == 1 ? text : "(" + text + ")";
}

bool close(double a, double b) { return std::fabs(a - b) <= kNear * std::max(std::fabs(a), std::fabs(b)); }

/// The value of an option of one number.
std::optional<double> single(const Group& group, const std::string& key) {
  const auto found = group.options.find(key);
  return found == group.options.end() || found->second.numbers.size() != 1
             ? std::nullopt
             : std::optional(found->second.numbers.front());
}

Finding rate_apart(std::int64_t step, const Side& a, double left, double right, std::size_t i, std::size_t total) {
  std::string text =
      "the learning rate of group " + std::to_string(i) + " is " + to_text(right) + " instead of " + to_text(left);
  if (left != 0 && right != 0) text += ", " + factor_text(right / left, {}, 1e-4);
  for (std::size_t j = 0; j < a.step.groups.size(); ++j) {
    if (j != i && single(a.step.groups[j], "lr") == right) text += " (that of group " + std::to_string(j) + ")";
  }
  Finding finding = said(step, "rate", "", text);
  finding.total = total;
  finding.distance = std::fabs(left - right) / std::max(std::fabs(left), std::fabs(right));
  finding.bound = kNear;
  return finding;
}

}  // namespace

bool alike(const Run& a, const Run& b) {
  const auto program = [](const Run& run) { return run.framework.substr(0, run.framework.find(' ')); };
  return a.layout == b.layout && a.ranks == b.ranks && program(a) == program(b) &&
         (a.axes == b.axes || a.axes.empty() || b.axes.empty());
}

std::map<std::string, const Group*> groups_of(const Step& step) {
  std::map<std::string, const Group*> found;
  for (const Group& group : step.groups) {
    for (const std::string& name : group.params) found.emplace(name, &group);
  }
  return found;
}

std::map<std::string, std::string> counters(const Step& step) {
  std::map<std::string, std::string> found;
  for (const auto& [rank, row] : step.ranks) {
    for (const auto& [steps, names] : row.counters) {
      for (const std::string& name : names) {
        const auto [known, added] = found.emplace(name, steps);
        if (!added && known->second != steps) known->second += " and " + steps;  // ranks that differ
      }
    }
  }
  return found;
}

std::vector<std::pair<std::size_t, std::size_t>> paired(const std::vector<Group>& a, const std::vector<Group>& b) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const auto says = [](const std::vector<Group>& groups) {
    return std::any_of(groups.begin(), groups.end(), [](const Group& group) { return !group.params.empty(); });
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::set<std::string> mine(a[i].params.begin(), a[i].params.end());
    for (std::size_t j = 0; j < b.size(); ++j) {
      const bool common = says(a) && says(b) ? std::any_of(b[j].params.begin(), b[j].params.end(),
                                                           [&](const auto& name) { return mine.contains(name); })
                                             : i == j && a.size() == b.size();
      if (common) pairs.emplace_back(i, j);
    }
  }
  return pairs;
}

bool implied(const Group& group, const std::string& key) {
  const auto option = group.options.find(key);
  if (option == group.options.end() || !option->second.numbers.empty()) return false;
  const std::string& text = option->second.text;
  if (key == "decoupled_weight_decay") return text == (group.optimizer == "AdamW" ? "true" : "false");
  return (key == "maximize" || key == "amsgrad") && text == "false";
}

std::vector<OptionApart> options_apart(const Group& a, const Group& b) {
  std::vector<OptionApart> found;
  if (a.optimizer != b.optimizer)
    found.push_back({"the optimizer", b.optimizer + " instead of " + a.optimizer, Verdict::inconclusive});
  for (const auto& [key, value] : a.options) {
    if (kWays.contains(key)) continue;
    const auto other = b.options.find(key);
    if (other == b.options.end()) {
      found.push_back({key, "not recorded for " + shown(value), Verdict::inconclusive});
      continue;
    }
    if (other->second == value) continue;
    const auto &mine = value.numbers, &theirs = other->second.numbers;
    const bool rounding =
        !mine.empty() && mine.size() == theirs.size() && std::equal(mine.begin(), mine.end(), theirs.begin(), close);
    found.push_back(
        {key, shown(other->second) + " instead of " + shown(value), rounding ? Verdict::rounding : Verdict::different});
  }
  for (const auto& [key, value] : b.options) {
    if (!kWays.contains(key) && !a.options.contains(key))
      found.push_back({key, shown(value) + " for what is not recorded", Verdict::inconclusive});
  }
  return found;
}

std::optional<Finding> options_apart(std::int64_t step, const Side& a, const Side& b) {
  const auto pairs = paired(a.step.groups, b.step.groups);
  std::optional<Finding> other;
  for (const auto& [i, j] : pairs) {
    const Group &mine = a.step.groups[i], &theirs = b.step.groups[j];
    for (const OptionApart& option : options_apart(mine, theirs)) {
      if (option.verdict != Verdict::different) continue;
      const auto left = single(mine, "lr"), right = single(theirs, "lr");
      if (option.key == "lr" && left && right) return rate_apart(step, a, *left, *right, i, pairs.size());
      if (!other) other = said(step, "rate", "", option.key + " of group " + std::to_string(i) + " is " + option.text);
    }
  }
  if (other) return other;
  const auto mine = counters(a.step), theirs = counters(b.step);
  std::vector<std::string> names;
  for (const auto& [name, steps] : mine) {
    const auto counter = theirs.find(name);
    if (counter != theirs.end() && counter->second != steps) names.push_back(name);
  }
  if (names.empty()) return std::nullopt;
  Finding finding = said(step, "rate", "",
                         "the optimizer counts " + theirs.at(names.front()) + " steps for " + mine.at(names.front()) +
                             (names.size() == mine.size() ? "" : " of " + some_of(names, 3)));
  finding.total = mine.size();
  return finding;
}

}  // namespace zs::probe

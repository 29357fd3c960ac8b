// SPDX-License-Identifier: Apache-2.0
// Colours that mean something: the same for a condition in all figures of a report.
#include <algorithm>
#include <cmath>

#include "figure/theme.hpp"
#include "plot/many.hpp"
#include "summary/result.hpp"

namespace zs::plot {
namespace {

constexpr std::size_t kHighlighted = 5;  // if there are too many conditions

/// Stages as hues, compiled ones strong; empty if that does not distinguish the conditions.
std::vector<Look> by_stage(const std::vector<Condition>& conditions) {
  const std::vector<std::string> stages = summary::levels(conditions, "zero_stage");
  std::vector<Look> made;
  bool any_strong = false;
  for (const Condition& condition : conditions) {
    const auto stage = std::ranges::find(stages, condition.attribute("zero_stage"));
    const auto on = [&](const char* key) { return condition.attribute(key) == "true"; };
    const Ink ink(static_cast<std::size_t>(stage - stages.begin()), on("compile") || on("deepcompile"));
    const bool taken = std::ranges::any_of(made, [&](const Look& one) { return one.ink == ink; });
    if (stage == stages.end() || taken) return {};
    any_strong = any_strong || ink.strong;
    made.push_back({ink});
  }
  return any_strong && stages.size() > 1 ? made : std::vector<Look>();
}

/// The conditions whose losses can be held against one another: of one model and data.
bool comparable(const std::vector<const Condition*>& conditions) {
  for (const Condition* const one : conditions) {
    for (const char* const key : {"model.name", "dataset"}) {
      if (one->attribute(key) != conditions.front()->attribute(key)) return false;
    }
  }
  return true;
}

std::vector<const Condition*> healthy(const std::vector<Condition>& conditions) {
  std::vector<const Condition*> kept;
  for (const Condition& condition : conditions) {
    if (!condition.bad() && std::isfinite(condition["final_loss"].value_or(HUGE_VAL))) kept.push_back(&condition);
  }
  return kept;
}

}  // namespace

std::string highlighted(const std::vector<Condition>& conditions) {
  return comparable(healthy(conditions)) ? "the five with the lowest final losses" : "the first five";
}

std::vector<Look> looks(const std::vector<Condition>& conditions) {
  const std::size_t hues = figure::Theme().palette.size();
  if (conditions.size() <= hues) {
    std::vector<Look> made = by_stage(conditions);
    for (std::size_t i = made.size(); i < conditions.size(); ++i) made.push_back({Ink(i)});
    return made;
  }
  std::vector<const Condition*> order = healthy(conditions);
  if (comparable(order)) {
    std::ranges::stable_sort(
        order, [](const Condition* a, const Condition* b) { return *(*a)["final_loss"] < *(*b)["final_loss"]; });
  }
  std::vector<Look> made(conditions.size(), Look{Ink(Ink::Role::grid), true});
  for (std::size_t i = 0; i < std::min(kHighlighted, order.size()); ++i)
    made[static_cast<std::size_t>(order[i] - conditions.data())] = {Ink(i)};
  return made;
}

}  // namespace zs::plot

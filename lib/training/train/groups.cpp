// SPDX-License-Identifier: Apache-2.0
#include "train/groups.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "base/number.hpp"

namespace zs::train {
namespace {

using Json = nlohmann::ordered_json;
using optimizer::Rule;

bool counts(Rule rule) { return rule == Rule::adamw || rule == Rule::adam || rule == Rule::adamw_8bit; }

const char* class_of(Rule rule) {
  static constexpr std::array kClasses = {"AdamW", "Adam", "SGD", "SGD", "Lion", "Muon", "AdamW8bit"};
  static_assert(kClasses.size() == static_cast<std::size_t>(Rule::adamw_8bit) + 1);
  return kClasses[static_cast<std::size_t>(rule)];
}

Json options(const optimizer::Settings& settings, Rule rule, bool decay, double learning_rate) {
  const bool beside_matrices = settings.kind == optimizer::Kind::muon && rule != Rule::muon;
  Json row = {{"lr", learning_rate * (beside_matrices ? settings.adamw_rate_ratio : 1)}};
  if (counts(rule) || rule == Rule::lion) row["betas"] = {settings.beta1, settings.beta2};
  if (counts(rule)) row["eps"] = settings.epsilon;
  row["weight_decay"] = decay ? settings.weight_decay : 0;
  if (rule == Rule::adamw || rule == Rule::adam) row["amsgrad"] = false, row["maximize"] = false;
  if (counts(rule) && !settings.correct_bias) row["correct_bias"] = false;
  if (rule == Rule::sgd || rule == Rule::sgd_momentum || rule == Rule::muon) {
    row["momentum"] = settings.momentum;
    row["nesterov"] = settings.nesterov;
    if (rule != Rule::muon) row["dampening"] = 0, row["maximize"] = false;
  }
  if (rule == Rule::muon) {
    row["ns_steps"] = settings.ns_steps;
    row["adjust_lr_fn"] = settings.match_rms ? "match_rms_adamw" : "original";
  }
  return row;
}

/// Calls `see` with each trained tensor's first parameter and rule.
void each(const zero::Engine& engine, const std::function<void(const unit::Parameter&, Rule)>& see) {
  for (std::size_t unit = 0; unit < engine.units().size(); ++unit) {
    for (const auto& parameters : unit::tensors(*engine.units()[unit])) {
      if (parameters[0]->trained) see(*parameters[0], engine.rule(unit, *parameters[0]));
    }
  }
}

}  // namespace

Json groups(const zero::Engine& engine, double learning_rate) {
  const zero::Settings& settings = engine.settings();
  std::vector<std::pair<std::pair<Rule, bool>, Json>> found;  // by rule and decay, in the order of their first tensors
  each(engine, [&](const unit::Parameter& parameter, Rule rule) {
    const std::pair key(rule, settings.decay_all || parameter.decay);
    auto group = std::ranges::find(found, key, [](const auto& one) { return one.first; });
    if (group == found.end()) {
      found.emplace_back(key, options(settings.optimizer, rule, key.second, learning_rate));
      group = std::prev(found.end());
    }
    group->second["params"].push_back(parameter.name_in_files());
  });
  Json rows = Json::array();
  for (auto& [key, row] : found) {
    row["optimizer"] = class_of(key.first);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json counters(const zero::Engine& engine) {
  Json named = Json::object();
  each(engine, [&](const unit::Parameter& parameter, Rule rule) {
    if (counts(rule)) named[to_text(engine.updates())].push_back(parameter.name_in_files());
  });
  return named;
}

}  // namespace zs::train

// SPDX-License-Identifier: Apache-2.0
#include "probe/rules.hpp"

#include "base/words.hpp"

namespace zs::probe {

double number_of(const Group& group, const std::string& key, double otherwise) {
  const auto found = group.options.find(key);
  return found == group.options.end() || found->second.numbers.size() != 1 ? otherwise : found->second.numbers[0];
}

std::optional<Rule> rule_of(const Group& group) {
  const std::string name = lower(group.optimizer);
  const auto says = [&](const char* key) {
    const auto found = group.options.find(key);
    return found != group.options.end() &&
           (found->second.text == "true" || (!found->second.numbers.empty() && found->second.numbers[0] != 0));
  };
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  Rule rule;
  rule.rate = number_of(group, "lr", 0);
  rule.decay = number_of(group, "weight_decay", 0);
  rule.eps = number_of(group, "eps", 1e-8);
  rule.amsgrad = says("amsgrad"), rule.maximize = says("maximize"), rule.nesterov = says("nesterov");
  if (const auto betas = group.options.find("betas"); betas != group.options.end() && betas->second.numbers.size() == 2)
    rule.beta1 = betas->second.numbers[0], rule.beta2 = betas->second.numbers[1];
  if (has("muon")) {
    if (group.options.contains("use_muon") && !says("use_muon"))
      return std::nullopt;  // an Adam inside Muon moves these
    rule.kind = Kind::muon;
    rule.momentum = number_of(group, "momentum", 0.95);
    return rule;
  }
  if (has("lion")) {
    rule.kind = Kind::lion;
    return rule;
  }
  if (name == "sgd") {
    rule.kind = Kind::sgd;
    rule.momentum = number_of(group, "momentum", 0), rule.dampening = number_of(group, "dampening", 0);
    rule.decoupled = false;
    return rule;
  }
  if (name == "adamw" || name == "adam" || name == "fusedadam" || name == "deepspeedcpuadam" || name == "cpuadam") {
    rule.decoupled = name != "adam" || says("decoupled_weight_decay");
    return rule;
  }
  return std::nullopt;
}

Slots slots_of(const Rule& rule, const Step& step, const std::string& parameter) {
  const auto has = [&](const std::string& slot) {
    return step.tensors.find("state." + slot + "/" + parameter) != nullptr;
  };
  if (rule.kind == Kind::adam) return {"exp_avg", "exp_avg_sq"};
  if (rule.kind == Kind::lion) return {"exp_avg", ""};
  return {has("momentum_buffer") ? "momentum_buffer" : has("momentum") ? "momentum" : "momentum_buffer", ""};
}

}  // namespace zs::probe

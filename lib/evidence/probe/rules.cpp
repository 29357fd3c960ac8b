// SPDX-License-Identifier: Apache-2.0
#include "probe/rules.hpp"

#include <algorithm>
#include <set>

#include "base/words.hpp"

namespace zs::probe {
namespace {

/// Packages whose classes have the rules of PyTorch's. Another package's class of the same name may have another rule.
const std::set<std::string> kPackages{
    "", "torch", "deepspeed", "transformers", "bitsandbytes", "apex", "transformer_engine", "megatron", "muon"};

/// Options that rules here compute with, or that change none.
const std::set<std::string> kAny{"lr",    "initial_lr", "weight_decay",   "maximize", "foreach",
                                 "fused", "capturable", "differentiable", "package",  "tags"};
const std::set<std::string> kAdam{"betas", "eps", "amsgrad", "decoupled_weight_decay"},
    kSgd{"momentum", "dampening", "nesterov"}, kLion{"betas", "eps"},
    kMuon{"betas",     "eps",          "momentum",        "nesterov", "ns_steps",
          "ns_method", "adjust_lr_fn", "ns_coefficients", "use_muon"};

std::string text_of(const Group& group, const std::string& key) {
  const auto found = group.options.find(key);
  return found == group.options.end() ? "" : found->second.text;
}

bool is_off(const Option& option) {
  return option.numbers.empty() ? option.text.empty() || option.text == "false" || option.text == "null"
                                : std::ranges::all_of(option.numbers, [](double number) { return number == 0; });
}

/// An option of the class that may change what it computes: it is not off, or, as bias_correction, it is. The class
/// does not read what a training adds to its groups (tags).
std::string unknown_option(const Group& group, const std::set<std::string>& known) {
  const std::string tags = text_of(group, "tags");
  for (const auto& [key, value] : group.options) {
    const bool corrects = key == "bias_correction" || key == "correct_bias";
    if (!kAny.contains(key) && !known.contains(key) && is_off(value) == corrects &&
        tags.find('"' + key + '"') == std::string::npos)
      return key;
  }
  return "";
}

const std::set<std::string>& options_of(Kind kind) {
  return kind == Kind::adam ? kAdam : kind == Kind::sgd ? kSgd : kind == Kind::lion ? kLion : kMuon;
}

/// The rule by the class's name and options alone.
std::optional<Rule> rule_of_name(const Group& group) {
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
    rule.decoupled = group.options.contains("decoupled_weight_decay") ? says("decoupled_weight_decay") : name != "adam";
    return rule;
  }
  return std::nullopt;
}

}  // namespace

double number_of(const Group& group, const std::string& key, double otherwise) {
  const auto found = group.options.find(key);
  return found == group.options.end() || found->second.numbers.size() != 1 ? otherwise : found->second.numbers[0];
}

std::optional<Rule> rule_of(const Group& group) {
  const auto rule = kPackages.contains(text_of(group, "package")) ? rule_of_name(group) : std::nullopt;
  return rule && unknown_option(group, options_of(rule->kind)).empty() ? rule : std::nullopt;
}

std::string rule_name(const Group& group) {
  const std::string package = text_of(group, "package");
  const auto rule = kPackages.contains(package) ? rule_of_name(group) : std::nullopt;
  const std::string option = rule ? unknown_option(group, options_of(rule->kind)) : "";
  return (package.empty() ? "" : package + ".") + group.optimizer + (option.empty() ? "" : " with " + option);
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

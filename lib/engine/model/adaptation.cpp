// SPDX-License-Identifier: Apache-2.0
#include "model/adaptation.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::model {
namespace {

using unit::Parameter;
using Product = Parameter::Product;

constexpr const char* kAll = "all-linear";

bool fits(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}
/// Matches a module like peft: by its name, or by the end of its name.
bool names_module(const std::string& pattern, const std::string& module) {
  return fits(pattern, module) || fits("*." + pattern, module);
}
/// A run of whole words of a name.
bool names_part(const std::string& pattern, const std::string& name) {
  return names_module(pattern, name) || names_module(pattern + ".*", name);
}

template <typename Names>
bool any(const std::vector<std::string>& patterns, const std::string& name, Names names) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return names(pattern, name); });
}

/// Matches a module that is trained whole like peft: by any end of its name or of a name around it.
bool saves_module(const std::string& pattern, const std::string& module) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = module.find('.', end + 1);
    if (fits("*" + pattern, module.substr(0, end))) return true;
  }
  return false;
}

bool is_saved(const Parameter& parameter, const Adaptation& how) {
  return any(how.modules, module_of(parameter.name), saves_module);
}

bool is_adapted(const Parameter& parameter, const Adaptation& how) {
  const auto targets = [](const std::string& pattern, const std::string& module) {
    return pattern == kAll || names_module(pattern, module);
  };
  return how.adapts() && parameter.product != Product::none && !is_saved(parameter, how) &&
         any(how.targets, module_of(parameter.name), targets);
}

/// Whether a parameter of the model itself is trained.
bool is_trained(const Parameter& parameter, const Adaptation& how) {
  return (!how.adapts() || is_saved(parameter, how)) && !any(how.frozen, parameter.name_in_files(), names_part);
}

/// Frozen matrices that bitsandbytes holds in 4 bits: the linear layers of blocks.
bool is_packed(const Parameter& parameter, const Adaptation& how) {
  return how.adapts() && !parameter.trained && parameter.product == Product::out_in && !parameter.expert;
}

void add_adapter(std::vector<Parameter>& parameters, std::size_t place, const Adaptation& how) {
  Parameter& weight = parameters[place];
  weight.adapter = static_cast<int>(parameters.size());
  weight.adapter_scale = how.scale();
  const bool out_in = weight.product == Product::out_in;
  const std::int64_t in = weight.shape[out_in ? 1 : 0], out = weight.shape[out_in ? 0 : 1];
  const std::string module = module_of(weight.name), keys = "lora_rank, " + weight.keys;
  const Parameter a{.name = module + ".lora_A.weight",
                    .shape = {how.rank, in},
                    .init = Parameter::Init::uniform,
                    .std = 1 / std::sqrt(static_cast<double>(in)),
                    .keys = keys,
                    .trained = !any(how.frozen, module + ".lora_A.weight", names_part),
                    .added = true};
  const Parameter b{.name = module + ".lora_B.weight",
                    .shape = {out, how.rank},
                    .init = Parameter::Init::zeros,
                    .keys = keys,
                    .trained = !any(how.frozen, module + ".lora_B.weight", names_part),
                    .added = true};
  parameters.push_back(a);
  parameters.push_back(b);
}

/// Words that name something: modules of any depth, "layers", "layers.0", "q_proj", "embed_tokens".
std::vector<std::string> words_in(const std::vector<std::string>& names) {
  std::set<std::string> words;
  for (const std::string& name : names) {
    for (const std::string& word : split(name, ".")) {
      if (!parse_int(word)) words.insert(word);
    }
  }
  return {words.begin(), words.end()};
}

template <typename Names>
void require_each(const std::vector<std::string>& patterns, const std::vector<std::string>& names,
                  const std::string& option, const std::string& what, Names matches) {
  for (const std::string& pattern : patterns) {
    if (any(names, pattern, [&](const std::string& name, const std::string& word) { return matches(word, name); }))
      continue;
    const std::string near = did_you_mean(pattern.substr(pattern.rfind('.') + 1), words_in(names));
    throw Error(option + ": no " + what + " of the model is named '" + pattern + "'" +
                (near.empty() && !names.empty() ? " (there is " + names.front() + ")" : near));
  }
}

/// Who names the targets, and the modules: an option, or a key of peft's file.
std::string says_targets(const Adaptation& how) {
  return how.file.empty() ? "--lora_targets" : how.file + ": target_modules";
}
std::string says_modules(const Adaptation& how) {
  return how.file.empty() ? "--modules_to_save" : how.file + ": modules_to_save";
}

/// peft would train a copy of a tied parameter, and leave the head unchanged.
void require_untied(const unit::Units& units, const Adaptation& how) {
  const int owner = units.back()->tied_to();
  if (owner < 0) return;
  const Parameter& tied = units[static_cast<std::size_t>(owner)]->parameters().front();  // the embedding of tokens
  if (is_saved(tied, how))
    throw Error(says_modules(how) + ": " + module_of(tied.name) +
                " is tied to the head, which peft would train apart from it: leave it out");
}

/// transformers 5 stacks these in memory, so peft knows them by names that differ from the names in files, and takes
/// the names in files, also of a layer without experts, for the stacks.
void require_no_experts(const unit::Units& units, const Adaptation& how) {
  const auto last = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::set<std::string> of_experts;
  for (const auto& unit : units) {
    for (const Parameter& parameter : unit->parameters()) {
      const std::string module = module_of(parameter.name);
      if (parameter.expert && is_saved(parameter, how))
        throw Error(says_modules(how) + ": " + module +
                    " is of an expert, whose weights peft has under other names: leave it out");
      const bool targeted =
          any(how.targets, module, [](auto& pattern, auto& name) { return names_module(pattern, name); });
      if (parameter.expert && targeted)
        throw Error(says_targets(how) + ": zs has no adapters for experts (" + module +
                    "): name products of attention");
      if (parameter.expert) of_experts.insert(last(module));
    }
  }
  for (const auto& unit : units) {
    for (const Parameter& parameter : unit->parameters()) {
      const std::string module = module_of(parameter.name);
      if (parameter.adapter >= 0 && !parameter.expert && of_experts.contains(last(module)))
        throw Error(says_targets(how) + ": peft would take an adapter of " + module +
                    " for one of experts: name products of attention (q_proj, k_proj, v_proj, o_proj)");
    }
  }
}

}  // namespace

double Adaptation::scale() const {
  return rank_stabilized ? alpha / std::sqrt(static_cast<double>(rank)) : alpha / rank;
}

std::string module_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

std::vector<Parameter> adapted(std::vector<Parameter> parameters, const Adaptation& how) {
  const std::size_t count = parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    parameters[i].trained = is_trained(parameters[i], how);
    if (is_packed(parameters[i], how)) parameters[i].packing = how.packing;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (is_adapted(parameters[i], how)) add_adapter(parameters, i, how);
  }
  return parameters;
}

void require_matches(const unit::Units& units, const Adaptation& how) {
  std::vector<std::string> names, modules, products;
  for (const auto& unit : units) {
    for (const Parameter& parameter : unit->parameters()) {
      names.push_back(parameter.name_in_files());
      if (parameter.added) continue;
      modules.push_back(module_of(parameter.name));
      if (parameter.product != Product::none) products.push_back(modules.back());
    }
  }
  if (how.adapts()) {
    require_no_experts(units, how);
    for (const std::string& target : how.targets) {
      const bool is_product = any(products, target, [](auto& name, auto& word) { return names_module(word, name); });
      if (target == kAll || is_product) continue;
      if (any(modules, target, [](auto& name, auto& word) { return names_module(word, name); }))
        throw Error(says_targets(how) + ": zs has no adapters for '" + target +
                    "': they are for the products of blocks; --modules_to_save " + target + " trains it whole");
      require_each({target}, products, says_targets(how), "product", names_module);
    }
    require_each(how.modules, modules, says_modules(how), "module", saves_module);
    require_untied(units, how);
  }
  const auto is_held = [](const auto& unit) { return unit->packed() > 0; };
  if (how.packing != Parameter::Packing::none && std::ranges::none_of(units, is_held))
    throw Error(
        "--nf4: this model has no frozen matrix that bitsandbytes holds in 4 bits (linear layers, stored "
        "[out, in]): leave it out");
  require_each(how.frozen, names, "--freeze", "parameter", names_part);
  if (unit::trained(units) == 0) throw Error("--freeze: nothing is left to be trained: all parameters are frozen");
}

std::vector<std::string> target_modules(const unit::Units& units) {
  std::set<std::string> adapted, others, targets;
  for (const auto& unit : units) {
    for (const Parameter& parameter : unit->parameters()) {
      if (parameter.added || !parameter.name.ends_with(".weight")) continue;
      (parameter.adapter >= 0 ? adapted : others).insert(module_of(parameter.name));
    }
  }
  const auto end = [](const std::string& module) { return module.substr(module.rfind('.') + 1); };
  for (const std::string& module : adapted) {
    const bool shared =
        std::ranges::any_of(others, [&](const std::string& other) { return end(other) == end(module); });
    targets.insert(shared ? module : end(module));
  }
  return {targets.begin(), targets.end()};
}

}  // namespace zs::model

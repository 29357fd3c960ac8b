// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/optimizer.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoints/fact.hpp"

namespace zs::checkpoints {
namespace {

using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::List;
using tensorfile::Shape;
using tensorfile::Tensor;
using tensorfile::Value;

/// Names of modules in Hugging Face's GPT-2 and other decoders, in their order of creation.
constexpr std::string_view kModules =
    "model transformer embed_tokens wte wpe layers h ln_1 self_attn attn ln_2 mlp input_layernorm "
    "post_attention_layernorm pre_feedforward_layernorm post_feedforward_layernorm norm ln_f q_proj k_proj v_proj "
    "o_proj qkv_proj q_norm k_norm c_attn c_fc c_proj gate_proj up_proj gate_up_proj down_proj weight bias lm_head";

/// Counts the ways to assign parameters to groups, each group in order, up to 2, and keeps one of them.
class Matching {
 public:
  Matching(const std::vector<std::vector<Shape>>& groups, const std::vector<Shape>& parameters)
      : groups_(groups), parameters_(parameters) {
    for (const auto& group : groups) needed_ += group.size();
  }

  std::vector<std::vector<std::size_t>> only() {
    std::vector<std::size_t> taken(groups_.size(), 0);
    if (needed_ > parameters_.size() || ways(taken, 0) != 1) return {};
    std::vector<std::vector<std::size_t>> found(groups_.size());
    for (std::size_t at = 0; at < parameters_.size(); ++at) {
      const int choice = chosen_.at({taken, at});
      if (choice < 0) continue;
      found[static_cast<std::size_t>(choice)].push_back(at);
      ++taken[static_cast<std::size_t>(choice)];
    }
    return found;
  }

 private:
  using Key = std::pair<std::vector<std::size_t>, std::size_t>;
  const std::vector<std::vector<Shape>>& groups_;
  const std::vector<Shape>& parameters_;
  std::size_t needed_ = 0;
  std::map<Key, int> ways_, chosen_;

  int ways(std::vector<std::size_t>& taken, std::size_t at) {
    std::size_t done = 0;
    for (const std::size_t count : taken) done += count;
    if (needed_ - done > parameters_.size() - at) return 0;
    if (at == parameters_.size()) return 1;
    const Key key(taken, at);
    if (const auto found = ways_.find(key); found != ways_.end()) return found->second;
    constexpr std::size_t kMost = 2000000;  // beyond that many cases nothing is certain
    if (ways_.size() > kMost) return 2;
    int sum = 0, choice = -1;
    for (std::size_t group = 0; group < groups_.size() && sum < 2; ++group) {
      if (taken[group] >= groups_[group].size() || groups_[group][taken[group]] != parameters_[at]) continue;
      ++taken[group];
      const int more = ways(taken, at + 1);
      --taken[group];
      if (more > 0) choice = static_cast<int>(group);
      sum += more;
    }
    if (sum < 2 && needed_ - done < parameters_.size() - at) {  // or it has no state
      const int more = ways(taken, at + 1);
      if (more > 0) choice = -1;
      sum += more;
    }
    chosen_[key] = choice;
    return ways_[key] = std::min(sum, 2);
  }
};

bool holds_tensor(const Value& value) {
  const auto inner = [](const Item& item) { return holds_tensor(item.value); };
  return value.get<Tensor>() || std::ranges::any_of(list_of(&value), holds_tensor) ||
         std::ranges::any_of(items_of(&value), inner);
}

/// Adds one part of a state: of bitsandbytes it is a dict of tensors, of LBFGS a list.
void add_part(Parameter& parameter, const std::string& key, const Value& value, const std::string& file) {
  if (const Tensor* const tensor = value.get<Tensor>()) {
    parameter.moments[key] = whole(*tensor, file);
    return;
  }
  const auto& list = list_of(&value);
  const Dict* const dict = value.get<Dict>();
  if (!holds_tensor(value) || (list.empty() && !dict)) {
    parameter.values[key] = value;
    return;
  }
  for (std::size_t i = 0; i < list.size(); ++i) add_part(parameter, key + "/" + std::to_string(i), list[i], file);
  if (!dict) return;
  for (const Item& item : dict->items) add_part(parameter, key + "/" + key_text(item.key), item.value, file);
}

/// The parameters that these names mean, which may have other wrappers than those of the model; none if the model lacks
/// one. Without a model they are the names themselves.
std::vector<std::string> meant(const State& state, std::vector<std::string> names) {
  std::vector<std::string> known;
  for (const Parameter& parameter : state.parameters) {
    if (parameter.weight) known.push_back(bare(parameter.name));
  }
  if (known.empty()) return names;
  for (std::string& name : names) name = bare(name);
  const std::string of_model = common_word(known), of_names = common_word(names);
  for (const std::string& lead : {std::string(), of_model}) {
    std::map<std::string, std::string> owners;
    for (const Parameter& parameter : state.parameters) {
      const std::string name = bare(parameter.name);
      if (parameter.weight && name.starts_with(lead))
        owners[name.substr(lead.size())] = parameter.tied.empty() ? parameter.name : parameter.tied;
    }
    for (const std::string& cut : {std::string(), of_names}) {
      std::vector<std::string> found;
      for (const std::string& name : names) {
        const auto owner = owners.find(name.substr(cut.size()));
        if (owner != owners.end()) found.push_back(owner->second);
      }
      if (found.size() == names.size()) return found;
    }
  }
  return {};
}

void add_state(Parameter& parameter, const Value& state, const std::string& file) {
  for (const Item& item : items_of(&state)) {
    const std::string key = key_text(item.key);
    const auto number = key == "step" ? number_of(&item.value) : std::nullopt;
    if (number)
      parameter.step = number;
    else
      add_part(parameter, key, item.value, file);
  }
}

/// The shape of a state's largest moment; nothing if it has none.
std::optional<Shape> shape_of_state(const Value& state) {
  Parameter held;
  add_state(held, state, "");
  const Whole* best = nullptr;
  for (const auto& [kind, moment] : held.moments) {
    if (!best || moment.count() > best->count()) best = &moment;
  }
  return best ? std::optional(best->shape) : std::nullopt;
}

}  // namespace

std::vector<std::vector<std::size_t>> match(const std::vector<std::vector<Shape>>& groups,
                                            const std::vector<Shape>& parameters) {
  return Matching(groups, parameters).only();
}

bool sort_as_modules(std::vector<std::string>& names) {
  static const std::vector<std::string_view> modules = words_of(kModules);
  std::vector<std::pair<std::vector<std::int64_t>, std::string>> keyed;
  for (const std::string& name : names) {
    std::vector<std::int64_t> key;
    for (std::size_t at = 0; at <= name.size();) {
      const std::size_t end = std::min(name.find('.', at), name.size());
      const std::string_view word = std::string_view(name).substr(at, end - at);
      const auto found = std::ranges::find(modules, word);
      const auto number = parse_int(word);
      if (found == modules.end() && !number) return false;
      key.push_back(number ? *number : found - modules.begin());
      at = end + 1;
    }
    keyed.emplace_back(std::move(key), name);
  }
  std::ranges::sort(keyed);
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = keyed[i].second;
  return true;
}

bool is_optimizer(const Value* value) {
  const Value *const groups = within(value, {"param_groups"}), *const state = within(value, {"state"});
  return groups && groups->get<List>() && state && state->get<Dict>();
}

std::map<std::string, std::string> hyper_of(const Value& group) {
  std::map<std::string, std::string> settings;
  for (const Item& item : items_of(&group)) {
    const std::string key = key_text(item.key);
    if (key == "params" || key == "param_names") continue;
    const auto number = item.value.get<Tensor>() ? number_of(&item.value) : std::nullopt;
    settings[key] = number ? text_of(Value(*number)) : text_of(item.value);
  }
  return settings;
}

std::vector<std::vector<std::string>> add_optimizer(State& into,
                                                    const std::vector<std::pair<std::string, Value>>& dicts) {
  struct Group {
    std::string file;
    std::map<std::string, std::string> hyper;
    std::vector<std::string> ids;
    std::vector<const Value*> states;  // null where a parameter has none
    std::vector<std::string> names;    // of the parameters, where the file says them
  };
  std::vector<Group> groups;
  bool numbers = true, stateless = true, said = true;
  into.optimizers = dicts.size();
  for (std::size_t number = 0; number < dicts.size(); ++number) {
    const auto& [file, dict] = dicts[number];
    // The numbers of each optimizer begin with 0.
    const std::string lead = dicts.size() > 1 ? std::to_string(number) + "." : "";
    std::map<std::string, const Value*> by_id;
    for (const Item& item : items_of(dict.find("state"))) by_id[key_text(item.key)] = &item.value;
    stateless = stateless && by_id.empty();
    std::set<std::string> known_ids;
    for (const Value& listed : list_of(dict.find("param_groups"))) {
      Group& group = groups.emplace_back(file, hyper_of(listed));
      for (const Value& name : list_of(listed.find("param_names"))) group.names.push_back(key_text(name));
      for (const Value& id : list_of(listed.find("params"))) {
        const std::string text = key_text(id);
        if (id.get<std::string>()) numbers = false;
        group.ids.push_back(id.get<std::string>() ? text : lead + text);
        group.states.push_back(by_id.contains(text) ? by_id.at(text) : nullptr);
        if (!known_ids.insert(text).second)
          into.fault(into.folder + "/" + file, "has the settings of parameter " + text + " twice");
      }
      said = said && group.names.size() == group.ids.size();
    }
    for (const Item& item : items_of(&dict)) {
      const std::string key = key_text(item.key);
      if (key != "state" && key != "param_groups") add_facts(into, "optimizer." + lead + key, item.value);
    }
    for (const auto& [id, state] : by_id) {
      if (!known_ids.contains(id)) add_facts(into, "optimizer." + lead + "state." + id, *state);
    }
  }
  const auto settle = [&](const auto& name_of) {
    std::vector<std::vector<std::string>> names;
    for (std::size_t number = 0; number < groups.size(); ++number) {
      const Group& group = groups[number];
      names.emplace_back();
      for (std::size_t i = 0; i < group.ids.size(); ++i) {
        names.back().push_back(name_of(number, i));
        Parameter& parameter = into.parameter(names.back().back());
        parameter.hyper = group.hyper;
        parameter.group = static_cast<int>(number);
        if (group.states[i]) add_state(parameter, *group.states[i], group.file);
      }
    }
    return names;
  };
  if (!numbers) return settle([&](std::size_t group, std::size_t i) { return groups[group].ids[i]; });
  const auto keep_numbers = [&](const std::string& why) {
    if (!stateless)
      into.notes.push_back(dicts.front().first + ": the optimizer's states are numbered, and " + why +
                           ": they are named #0, #1, ...; name them by --names");
    return settle([&](std::size_t group, std::size_t i) { return "#" + groups[group].ids[i]; });
  };
  if (said && !groups.empty()) {
    std::vector<std::string> names;
    for (const Group& group : groups) names.insert(names.end(), group.names.begin(), group.names.end());
    const std::vector<std::string> owners = meant(into, names);
    if (owners.size() != names.size()) return keep_numbers("their param_names are not those of the model");
    std::size_t at = 0;
    return settle([&](std::size_t, std::size_t) { return owners[at++]; });
  }
  std::vector<std::vector<Shape>> shapes;
  bool known = true;
  for (const Group& group : groups) {
    auto& list = shapes.emplace_back();
    for (const Value* const state : group.states) {
      const auto shape = state ? shape_of_state(*state) : std::nullopt;
      known = known && shape;
      list.push_back(shape.value_or(Shape{}));
    }
  }
  std::vector<std::string> names;
  std::vector<Shape> model;
  for (const Parameter& parameter : into.parameters) {
    if (!parameter.buffer && parameter.tied.empty() && parameter.weight) names.push_back(parameter.name);
  }
  if (!into.ordered) known = sort_as_modules(names) && known;
  for (const std::string& name : names) model.push_back(into.find(name)->weight->shape);
  const auto found = known ? match(shapes, model) : std::vector<std::vector<std::size_t>>{};
  if (found.empty()) return keep_numbers("shapes do not tell whose each is");
  if (std::set<Shape>(model.begin(), model.end()).size() < model.size())
    into.notes.push_back(dicts.front().first +
                         ": the optimizer's states are numbered: zs takes them in the order of the model's parameters");
  return settle([&](std::size_t group, std::size_t i) { return names[found[group][i]]; });
}

}  // namespace zs::checkpoints

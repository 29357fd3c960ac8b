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

/// The shape of a state's moments; nothing if all are single numbers.
const Tensor* largest(const Value& state) {
  const Tensor* best = nullptr;
  for (const auto& [key, tensor] : tensors_of(&state)) {
    const Value* const held = state.find(key);
    if (key != "step" && (!best || tensor.count() > best->count())) best = held->get<Tensor>();
  }
  return best;
}

void add_state(Parameter& parameter, const Value& state, const std::string& file) {
  for (const Item& item : items_of(&state)) {
    const std::string key = key_text(item.key);
    if (key == "step") {
      parameter.step = number_of(&item.value);
    } else if (const Tensor* const tensor = item.value.get<Tensor>()) {
      parameter.moments[key] = whole(*tensor, file);
    } else if (!item.value.is_none()) {
      parameter.hyper[key] = text_of(item.value);
    }
  }
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
    if (key == "params" || key == "param_names" || item.value.is_none()) continue;
    const auto number = item.value.get<Tensor>() ? number_of(&item.value) : std::nullopt;
    settings[key] = number ? text_of(Value(*number)) : text_of(item.value);
  }
  return settings;
}

void add_optimizer(State& into, const std::vector<std::pair<std::string, Value>>& dicts) {
  struct Group {
    std::string file;
    std::map<std::string, std::string> hyper;
    std::vector<std::string> ids;
    std::vector<const Value*> states;  // null where a parameter has none
  };
  std::vector<Group> groups;
  bool numbers = true, stateless = true;
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
      for (const Value& id : list_of(listed.find("params"))) {
        const std::string text = key_text(id);
        if (id.get<std::string>()) numbers = false;
        group.ids.push_back(id.get<std::string>() ? text : lead + text);
        group.states.push_back(by_id.contains(text) ? by_id.at(text) : nullptr);
        if (!known_ids.insert(text).second)
          into.fault(into.folder + "/" + file, "has the settings of parameter " + text + " twice");
      }
    }
  }
  const auto settle = [&](const std::string& name, std::size_t number, std::size_t i) {
    Parameter& parameter = into.parameter(name);
    parameter.hyper = groups[number].hyper;
    parameter.group = static_cast<int>(number);
    if (groups[number].states[i]) add_state(parameter, *groups[number].states[i], groups[number].file);
  };
  const auto settle_all = [&](const auto& name) {
    for (std::size_t group = 0; group < groups.size(); ++group) {
      for (std::size_t i = 0; i < groups[group].ids.size(); ++i) settle(name(group, i), group, i);
    }
  };
  if (!numbers) return settle_all([&](std::size_t group, std::size_t i) { return groups[group].ids[i]; });
  std::vector<std::vector<Shape>> shapes;
  bool known = true;
  for (const Group& group : groups) {
    auto& list = shapes.emplace_back();
    for (const Value* const state : group.states) {
      const Tensor* const tensor = state ? largest(*state) : nullptr;
      known = known && tensor;
      list.push_back(tensor ? tensor->shape : Shape{});
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
  if (found.empty() && !stateless)
    into.notes.push_back(dicts.front().first +
                         ": the optimizer's states are numbered, and shapes do not tell whose each is: they are "
                         "named #0, #1, ...; name them by --names");
  settle_all([&](std::size_t group, std::size_t i) {
    return found.empty() ? "#" + groups[group].ids[i] : names[found[group][i]];
  });
}

}  // namespace zs::checkpoints

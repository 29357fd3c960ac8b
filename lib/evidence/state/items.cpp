// SPDX-License-Identifier: Apache-2.0
#include "state/items.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/number.hpp"
#include "checkpoints/fact.hpp"

namespace zs::state {
namespace {

using checkpoints::bare;
using tensorfile::Dtype;

/// Settings of every program's groups.
const std::set<std::string, std::less<>> kEverywhere = {"lr", "weight_decay", "betas", "eps", "momentum"};
/// How an optimizer computes, which changes rounding at most; and the step of FusedAdam's groups, which is a step.
const std::set<std::string, std::less<>> kArithmetic = {"foreach", "fused", "capturable", "differentiable", "step"};
/// Like no setting: torch.optim has None where another program writes nothing.
constexpr const char* kNone = "None";

bool same_bits(const Whole& a, const Whole& b) {
  return a.shape == b.shape && a.dtype == b.dtype && defect(a).empty() && defect(b).empty() &&
         tensorfile::same_bits(joined(a, ""), joined(b, ""));
}

/// The common first word of all names of parameters, with its dot; "" if there is none.
std::string common(const State& state) {
  std::vector<std::string> names;
  for (const Parameter& parameter : state.parameters) {
    if (!parameter.name.starts_with('#')) names.push_back(bare(parameter.name));
  }
  return checkpoints::common_word(names);
}

NumbersPtr numbers_of(const Whole* whole) {
  if (!whole) return nullptr;
  return std::make_shared<const Numbers>(
      Numbers{whole->dtype, whole->shape, [whole] { return defect(*whole); },
              [whole](const std::string& what) { return checkpoints::joined(*whole, what); }});
}

/// The result of a line for these parts, which all have one kind.
DiffItem made_of(const Join& join, const std::string& kind, const std::string& name,
                 const std::map<std::string, const DiffItem*>& parts) {
  const DiffItem& first = *parts.begin()->second;
  DiffItem made{.kind = kind, .name = name, .of_layout = first.of_layout};
  std::map<std::string, NumbersPtr> held;
  for (const auto& [part, item] : parts) {
    if (item->tensor ? item->tensor->dtype != first.tensor->dtype : item->text != first.text)
      throw Error(join.place, join.line,
                  part + " and " + parts.begin()->first + " have another " + (item->tensor ? "type" : kind) + ": " +
                      (item->tensor ? "" : item->text + " and " + first.text));
    held[part] = item->tensor;
  }
  if (!first.tensor) {
    made.text = first.text;
    return made;
  }
  Numbers numbers{first.tensor->dtype};
  try {
    numbers.shape = join.expression.shape([&](const std::string& part) { return held.at(part)->shape; });
  } catch (const Error& error) {
    throw Error(join.place, join.line, name + ": " + error.what());
  }
  numbers.defect = [held] {
    for (const auto& [part, tensor] : held) {
      if (const std::string what = tensor->defect(); !what.empty()) return part + " " + what;
    }
    return std::string();
  };
  numbers.joined = [held, expression = join.expression](const std::string& what) {
    return expression.tensor([&](const std::string& part) { return held.at(part)->joined(what); });
  };
  made.tensor = std::make_shared<const Numbers>(std::move(numbers));
  return made;
}

/// Replaces the parts of a line by its result.
void apply(const Join& join, const Rename& rename, const Rename& result, Items& items) {
  std::map<std::string, std::map<std::string, const DiffItem*>> by_kind;
  const std::vector<std::string> names = join.expression.names();
  for (const std::string& name : names) {
    bool found = false;
    for (const auto& [key, item] : items) {
      if (item.name == rename(name) && !item.alias) by_kind[item.kind][name] = &item, found = true;
    }
    if (!found) throw Error(join.place, join.line, "no parameter of that side is " + name);
  }
  const std::set<std::string> distinct(names.begin(), names.end());
  Items made;
  std::set<std::string> used;
  for (const auto& [kind, parts] : by_kind) {
    if (parts.size() != distinct.size()) continue;
    DiffItem item = made_of(join, kind, result(join.name), parts);
    for (const auto& [name, part] : parts) used.insert(kind + " " + part->name);
    made.emplace(kind + " " + item.name, std::move(item));
  }
  if (made.empty())
    throw Error(join.place, join.line, names.front() + " and the others have no kind of numbers in common");
  for (const std::string& key : used) items.erase(key);
  items.merge(made);
}

}  // namespace

std::string count_both_ways(std::map<std::string, std::string>& facts) {
  const auto count = [&](const char* name) -> std::optional<std::int64_t> {
    const auto found = facts.find(name);
    return found == facts.end() ? std::nullopt : parse_int(found->second);
  };
  const char *const torch = "schedule.last_epoch", *const deepspeed = "schedule.last_batch_iteration";
  const auto epoch = count(torch), iteration = count(deepspeed);
  if (epoch.has_value() == iteration.has_value()) return "";
  const std::string name = epoch ? deepspeed : torch;
  const std::string text = to_text(epoch ? *epoch - 1 : *iteration + 1);
  facts[name] = text;
  return name + " " + text + ", as " +
         (epoch ? torch + (" " + to_text(*epoch)) : deepspeed + (" " + to_text(*iteration)));
}

std::int64_t Numbers::count() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

std::pair<Rename, Rename> joined_names(const State& a, const State& b, const Names& names) {
  const Rename first = [&names](const std::string& name) { return names.renamed(bare(name)); };
  const auto cut = [](Rename rename, const std::string& prefix) -> Rename {
    return [rename = std::move(rename), prefix](const std::string& name) {
      const std::string made = rename(name);
      return made.starts_with(prefix) ? made.substr(prefix.size()) : made;
    };
  };
  const std::string of_a = names.empty() ? common(a) : "", of_b = names.empty() ? common(b) : "";
  std::pair<Rename, Rename> best{first, bare};
  std::size_t most = 0;
  for (const auto& [x, y] : {std::pair<std::string, std::string>{"", ""}, {of_a, ""}, {"", of_b}, {of_a, of_b}}) {
    const Rename left = cut(first, x), right = cut(bare, y);
    std::set<std::string> bare_names;
    for (const Parameter& parameter : b.parameters) bare_names.insert(right(parameter.name));
    const auto same = static_cast<std::size_t>(
        std::ranges::count_if(a.parameters, [&](const Parameter& p) { return bare_names.contains(left(p.name)); }));
    if (same > most) best = {left, right}, most = same;
  }
  return best;
}

Items items_of(const State& state, const Rename& rename, const Names& names, bool first) {
  Items items;
  const auto add = [&](const std::string& kind, const std::string& name, DiffItem item) {
    item.kind = kind, item.name = name;
    items.emplace(kind + " " + name, std::move(item));
  };
  for (const Parameter& parameter : state.parameters) {
    const std::string name = rename(parameter.name);
    const Parameter* base = &parameter;
    if (!parameter.tied.empty()) {
      if (const Parameter* const other = state.find(parameter.tied)) base = other;
    }
    const bool alias = base != &parameter;
    const Whole* const weight = parameter.weight ? &*parameter.weight : base->weight ? &*base->weight : nullptr;
    const Whole* const master = parameter.master ? &*parameter.master : base->master ? &*base->master : nullptr;
    const bool wide = weight && weight->dtype == Dtype::f32;
    const auto numbers = [&](const std::string& kind, const Whole* held) {
      add(kind, name, {.tensor = numbers_of(held), .alias = alias, .weight = true});
    };
    if (master) numbers("float32", master);
    if (wide && !master) numbers("float32", weight);
    if (wide && master)
      add("weight", name,
          {.tensor = numbers_of(weight), .alias = alias, .weight = true, .of_layout = same_bits(*weight, *master)});
    if (weight && !wide) numbers(std::string(name_of(weight->dtype)), weight);
    if (alias) continue;
    for (const auto* const tensors : {&parameter.gradients, &parameter.moments}) {
      for (const auto& [kind, held] : *tensors) add(kind, name, {.tensor = numbers_of(&held)});
    }
    if (parameter.step) add("step", name, {.text = to_text(*parameter.step)});
    for (const auto& [key, text] : parameter.hyper) {
      if (kArithmetic.contains(key)) continue;
      add(key, name, {.text = text, .spare = !kEverywhere.contains(key), .derived = text == kNone});
    }
    for (const auto& [key, value] : parameter.values)
      add(key, name, {.text = checkpoints::text_of(value), .derived = value.is_none()});
  }
  std::map<std::string, std::string> facts = state.facts;
  count_both_ways(facts);
  for (const auto& [fact, text] : facts) {
    add(std::string(checkpoints::kind_of(fact)), fact.substr(fact.find('.') + 1),
        {.text = text,
         .of_layout = fact.starts_with("training.universal_checkpoint_info."),
         .derived = !state.facts.contains(fact)});
  }
  for (const auto& [key, text] : state.config) add("config", key, {.text = text});
  if (state.step) add("training", "global step", {.text = to_text(*state.step)});
  if (state.skipped) add("training", "skipped steps", {.text = to_text(*state.skipped)});
  // The result has a name of the other side; A's names are translated to B's.
  const Rename result = [&](const std::string& name) { return first ? name : names.renamed(name); };
  for (const Join& join : names.joins(state, first)) apply(join, rename, result, items);
  return items;
}

}  // namespace zs::state

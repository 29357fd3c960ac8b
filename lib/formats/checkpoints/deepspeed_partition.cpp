// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/deepspeed_reader.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/number.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/flat.hpp"
#include "checkpoints/optimizer.hpp"

namespace zs::checkpoints::deepspeed {

std::vector<std::vector<Listed>> Reader::listed(int mp) {
  std::vector<std::vector<Listed>> groups;
  const auto found = model_files_.find(mp);
  if (found == model_files_.end()) return groups;
  const Value* const shapes = found->second.front().root.find("param_shapes");
  const auto add = [&](const Value& group) {
    auto& into = groups.emplace_back();
    for (const Item& item : items_of(&group)) {
      const Shape shape = shape_of(item.value);
      into.push_back({key_text(item.key), shape, Whole{{}, shape}.count(), groups.size() - 1});
    }
  };
  for (const Value& group : list_of(shapes)) add(group);
  if (groups.empty() && shapes && shapes->get<Dict>()) add(*shapes);
  return groups;
}

void Reader::partitions() {
  std::set<std::string> taken;
  for (const auto& [mp, files] : optimizer_files_) {
    const auto groups = listed(mp);
    if (groups.empty()) {
      fault(files.front().name, "the model file lists no param_shapes: whose elements these are is not known");
      continue;
    }
    bool again = false;
    for (const auto& group : groups) {
      for (const Listed& one : group) again = !taken.insert(one.name).second || again;
    }
    if (again) {
      fault(files.front().name, "has parameters of another model-parallel rank: tensor parallelism is not joined");
      continue;
    }
    if (divided().parameters) {
      stage_3(groups, files);
    } else {
      for (std::size_t group = 0; group < groups.size(); ++group)
        experts_.empty() ? stage_1(group, groups[group], files) : stage_1_experts(group, groups[group], files);
      for (const Opened& file : files) counts(file, groups.size());
    }
    for (const Opened& file : files) scaler(file, *file.root.find("optimizer_state_dict"));
  }
}

void Reader::scaler(const Opened& file, const Value& held) {
  State said;
  for (const char* const key :
       {"cur_scale", "cur_iter", "last_overflow_iter", "cur_hysteresis", "scale_factor", "scale_window"}) {
    if (const Value* const value = within(&held, {"loss_scaler", key}))
      add_facts(said, std::string("scaler.") + key, *value);
  }
  repeat(file, said, file);
}

void Reader::repeat(const Opened& file, const State& said, const Opened& first) {
  const std::string of_rank = " of rank " + std::to_string(file.dp);
  if (file.dp != first.dp) {  // client state and buffers, which each rank may have otherwise
    for (const auto& [name, text] : std::map(state_.facts)) {
      if (kind_of(name) == "training" && name.find(" of rank ") == std::string::npos && !said.facts.contains(name))
        state_.facts[name + of_rank] = "none";
    }
    const auto held = tensors_of(file.root.find("module"));
    for (const auto& [name, tensor] : tensors_of(first.root.find("module"))) {
      if (tensor.count() == 0) continue;
      const auto twin = std::ranges::find(held, name, [](const auto& one) { return one.first; });
      if (twin == held.end() || !same_bits(twin->second, tensor))
        state_.facts["training." + name + of_rank] = twin == held.end() ? "none" : text_of(Value(twin->second));
    }
  }
  for (const auto& [name, text] : said.facts) {
    const bool shared = kind_of(name) != "training";  // what ranks share is compared by repeated()
    const auto found = state_.facts.find(name);
    if (found != state_.facts.end() && (found->second == text || shared)) continue;
    const std::string place = shared || file.dp == first.dp ? name : name + of_rank;
    state_.facts[place] = text;
    if (const auto value = said.values.find(name); value != said.values.end()) state_.values[place] = value->second;
  }
}

Whole& Reader::place(const Listed& one, const std::string& kind, tensorfile::Dtype dtype) {
  Parameter& parameter = state_.parameter(one.name);
  parameter.group = static_cast<int>(one.group);
  if (kind == "master") {
    if (!parameter.master) parameter.master = Whole{dtype, one.shape};
    return *parameter.master;
  }
  return parameter.moments.try_emplace(kind, Whole{dtype, one.shape}).first->second;
}

void Reader::step(const Opened& file, std::optional<double> number, const std::vector<Listed>& group) {
  if (group.empty()) return;
  const auto [before, fresh] = stepped_.emplace(group.front().name, number.has_value());
  if (!fresh && before->second != number.has_value())
    fault(file.name, std::string(number ? "says" : "does not say") +
                         " how many steps its optimizer has taken, that of a lower rank " +
                         (number ? "does not" : "does"));
  if (!number) return;
  for (const Listed& one : group) {
    Parameter& parameter = state_.parameter(one.name);
    if (parameter.step && *parameter.step != *number) {
      fault(file.name,
            "its optimizer has taken " + to_text(*number) + " steps, that of a lower rank " + to_text(*parameter.step));
      return;
    }
    parameter.step = number;
  }
}

namespace {

/// The position of an expert's number in a parameter's name, and the number; nothing for other parameters.
std::optional<std::pair<std::size_t, int>> expert_in(const std::string& name) {
  constexpr std::string_view kExperts = ".deepspeed_experts.";
  const std::size_t at = name.find(kExperts);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kExperts.size();
  const auto number = parse_int(std::string_view(name).substr(begin, name.find('.', begin) - begin));
  return number ? std::optional(std::pair(begin, static_cast<int>(*number))) : std::nullopt;
}

/// The flat master weights of a group in a rank's file; nullptr if it has none.
const Tensor* master_of(const Opened& file, std::size_t group) {
  const auto& masters = list_of(within(&file.root, {"optimizer_state_dict", "single_partition_of_fp32_groups"}));
  const Tensor* const master = group < masters.size() ? masters[group].get<Tensor>() : nullptr;
  return master && master->shape.size() == 1 ? master : nullptr;
}

}  // namespace

void Reader::stage_1_experts(std::size_t group, const std::vector<Listed>& list, const std::vector<Opened>& files) {
  int each = 0, experts = 0;
  for (const Listed& one : list) {
    if (const auto expert = expert_in(one.name)) each = std::max(each, expert->second + 1);
  }
  for (const Parameter& one : state_.parameters) {
    if (const auto expert = expert_in(one.name)) experts = std::max(experts, expert->second + 1);
  }
  const int divided = each > 0 ? std::max(experts / each, 1) : 1;
  for (int place = 0; place < divided; ++place) {
    std::vector<Listed> held = list;
    for (Listed& one : held) {
      if (const auto expert = expert_in(one.name))
        one.name.replace(expert->first, std::to_string(expert->second).size(),
                         std::to_string(expert->second + place * each));
    }
    std::vector<Opened> of_place;
    std::ranges::copy_if(files, std::back_inserter(of_place),
                         [&](const Opened& file) { return file.dp % divided == place; });
    stage_1(group, held, of_place, divided);
  }
}

std::optional<std::int64_t> Reader::share_of_group(std::size_t group, std::int64_t listed,
                                                   const std::vector<Opened>& files, int divided) {
  std::int64_t held = 0;
  std::map<int, std::int64_t> lengths, padded;
  for (const Opened& file : files) {
    const Tensor* const master = master_of(file, group);
    if (!master) {
      fault(file.name, "has no master weights of group " + std::to_string(group));
      continue;
    }
    const auto& paddings = list_of(within(&file.root, {"optimizer_state_dict", "group_paddings"}));
    lengths[file.dp] = master->count();
    held += master->count();
    padded[file.dp] = master->count() + (group < paddings.size() ? integer_of(&paddings[group]).value_or(0) : 0);
  }
  if (lengths.empty()) return {};
  // The masters are stored with or without the padding: by which class of optimizer, the file does not say.
  std::int64_t share = 0;
  const std::int64_t ranks = state_.ranks ? *state_.ranks / divided : static_cast<std::int64_t>(files.size());
  const bool complete = static_cast<std::int64_t>(lengths.size()) == ranks;
  const bool stripped = complete ? held == listed : lengths.begin()->second != padded.rbegin()->second;
  for (const auto& [dp, length] : lengths) share = std::max(share, stripped ? padded[dp] : length);
  if (complete && !stripped && held < listed) {
    fault(files.front().name, "group " + std::to_string(group) + " has " + to_text(held) +
                                  " elements over all ranks, param_shapes " + to_text(listed));
    return {};
  }
  if (share * ranks < listed) {
    fault(files.front().name, "group " + std::to_string(group) + ": " + to_text(ranks) + " ranks of " + to_text(share) +
                                  " elements are fewer than the " + to_text(listed) + " of param_shapes");
    return {};
  }
  return share;
}

void Reader::stage_1(std::size_t group, const std::vector<Listed>& list, const std::vector<Opened>& files,
                     int divided) {
  std::int64_t listed = 0;
  for (const Listed& one : list) listed += one.count;
  const auto share = share_of_group(group, listed, files, divided);
  if (!share) return;
  for (const Opened& file : files) {
    const Tensor* const master = master_of(file, group);
    if (!master) continue;
    const std::int64_t first = *share * (file.dp / divided);
    const auto spread = [&](const Tensor& flat, const std::string& kind) {
      std::int64_t at = 0;
      for (const Listed& one : list) {
        const std::int64_t begin = std::max(at, first), end = std::min(at + one.count, first + flat.count());
        Whole& into = place(one, kind, flat.dtype);
        if (begin < end) {
          into.pieces.push_back({run(flat, begin - first, end - begin), begin - at, {}, file.dp, file.name});
          if (kind == "master") mapping(file, one, begin - first, end - begin);
        }
        at += one.count;
      }
      const std::int64_t rest = std::max<std::int64_t>(listed - first, 0);
      if (flat.count() > rest)
        state_.paddings.emplace_back(kind + " of group " + std::to_string(group),
                                     Piece{run(flat, rest, flat.count() - rest), 0, {}, file.dp, file.name});
    };
    spread(*master, "master");
    const Value* const base = within(&file.root, {"optimizer_state_dict", "base_optimizer_state"});
    const auto& elastic = list_of(base);
    const auto& states = items_of(within(base, {"state"}));
    const auto& param_groups = list_of(within(base, {"param_groups"}));
    const Value* const settings = group < param_groups.size() ? &param_groups[group] : nullptr;
    const auto by_number =
        std::ranges::find(states, std::to_string(group), [](const Item& item) { return key_text(item.key); });
    const Value* const state = group < elastic.size()      ? &elastic[group]
                               : by_number != states.end() ? &by_number->value
                                                           : nullptr;
    if (settings) hyper(file, *settings, list);
    std::optional<double> steps;
    for (const Item& item : items_of(state)) {
      const std::string key = key_text(item.key);
      const Tensor* const tensor = item.value.get<Tensor>();
      if (key == "step")
        steps = number_of(&item.value);
      else if (tensor && tensor->shape.size() == 1)
        spread(*tensor, key);
      else
        of_group(file, group, key, item.value, list);
    }
    if (!steps) steps = number_of(within(settings, {"step"}));  // FusedAdam
    step(file, steps, list);
  }
}

void Reader::of_group(const Opened& file, std::size_t group, const std::string& key, const Value& value,
                      const std::vector<Listed>& list) {
  const Tensor* const tensor = value.get<Tensor>();
  const bool single = tensor ? tensor->shape.empty() : list_of(&value).empty() && items_of(&value).empty();
  const auto has = [&](const Parameter& one) {
    const auto moment = one.moments.find(key);
    const auto held = one.values.find(key);
    return tensor ? moment != one.moments.end() && same_bits(joined(moment->second, key), *tensor)
                  : held != one.values.end() && text_of(held->second) == text_of(value);
  };
  bool same = single;
  for (const Listed& one : list) {
    Parameter& parameter = state_.parameter(one.name);
    const bool fresh = !parameter.moments.contains(key) && !parameter.values.contains(key);
    if (single && fresh && tensor) parameter.moments[key] = whole(*tensor, file.name, file.dp);
    if (single && fresh && !tensor) parameter.values[key] = value;
    same = same && has(parameter);
  }
  // Whose part it is, zs does not know.
  if (!same)
    add_facts(state_, "optimizer.group " + std::to_string(group) + " of rank " + std::to_string(file.dp) + "." + key,
              value);
}

void Reader::counts(const Opened& file, std::size_t groups) {
  const Value *const root = file.root.find("optimizer_state_dict"), *const base = root->find("base_optimizer_state");
  const auto expect = [&](const Value* list, const char* what) {
    if (list_of(list).size() != groups)
      fault(file.name,
            "has " + std::to_string(list_of(list).size()) + " " + what + ", param_shapes " + std::to_string(groups));
  };
  expect(root->find("single_partition_of_fp32_groups"), "groups of masters");
  if (base && base->get<Dict>()) expect(base->find("param_groups"), "groups of settings");
}

void Reader::mapping(const Opened& file, const Listed& one, std::int64_t begin, std::int64_t count) {
  const auto& maps = list_of(within(&file.root, {"optimizer_state_dict", "param_slice_mappings"}));
  const Value* const said = one.group < maps.size() ? maps[one.group].find(one.name) : nullptr;
  const auto start = integer_of(within(said, {"start"})), size = integer_of(within(said, {"numel"}));
  if (!start || !size || (*start == begin && *size == count)) return;
  // With round_robin_gradients the elements are in the order of param_shapes, as the 16-bit weights show.
  const auto is_told = [](const std::string& note) { return note.find("round_robin") != std::string::npos; };
  if (std::ranges::none_of(state_.notes, is_told))
    state_.notes.push_back(file.name + ": param_slice_mappings has " + to_text(*size) + " elements of " + one.name +
                           " from " + to_text(*start) + " on, the order of param_shapes " + to_text(count) + " from " +
                           to_text(begin) +
                           " on; zs goes by the latter, ds_to_universal.py and safe_get_full_fp32_param by the former "
                           "(round_robin_gradients)");
}

void Reader::hyper(const Opened& file, const Value& group, const std::vector<Listed>& list) {
  const Texts settings = hyper_of(group);
  bool told = false;
  for (const Listed& one : list) {
    Texts& held = state_.parameter(one.name).hyper;
    const auto [by, fresh] = said_.emplace(one.name, file.dp);
    if (fresh) held = settings;
    const auto found = told ? std::vector<std::string>() : unlike(by->second, held, file.dp, settings);
    if (!found.empty()) fault(file.name, found.front()), told = true;
  }
}

void Reader::spread(const Opened& file, const std::vector<Listed>& list, const Flat& flat, const std::string& kind,
                    std::int64_t ranks) {
  std::int64_t at = 0, needed = 0;
  for (const Listed& one : list) needed += (one.count + ranks - 1) / ranks;
  if (flat.count() != needed) {
    fault(file.name, "has " + to_text(flat.count()) + " elements of " + kind + ", expected " + to_text(needed) +
                         " of param_shapes on " + to_text(ranks) + " ranks");
    return;
  }
  for (const Listed& one : list) {
    const std::int64_t part = (one.count + ranks - 1) / ranks, begin = std::min(part * file.dp, one.count);
    const std::int64_t held = std::min(part, one.count - begin);
    Whole& into = place(one, kind, flat.dtype());
    flat.cut(at, held, [&](Tensor tensor, std::int64_t from) {
      into.pieces.push_back({std::move(tensor), begin + from, {}, file.dp, file.name});
    });
    // The padding of masters is what was in memory: DeepSpeed does not clear it. No gradient reaches it.
    if (kind != "master") {
      flat.cut(at + held, part - held, [&](Tensor tensor, std::int64_t) {
        state_.paddings.emplace_back(kind + " of " + one.name, Piece{std::move(tensor), 0, {}, file.dp, file.name});
      });
    }
    at += part;
  }
}

void Reader::stage_3(const std::vector<std::vector<Listed>>& groups, const std::vector<Opened>& files) {
  const std::int64_t ranks = state_.ranks.value_or(static_cast<std::int64_t>(files.size()));
  std::vector<Listed> list;
  for (const auto& group : groups) list.insert(list.end(), group.begin(), group.end());
  for (const Opened& file : files) {
    const Value* const inner = within(&file.root, {"optimizer_state_dict", "optimizer_state_dict"});
    Flat masters;
    for (const Value& each : list_of(within(&file.root, {"optimizer_state_dict", "fp32_flat_groups"}))) {
      if (each.get<Tensor>()) masters.add(*each.get<Tensor>());
      for (const Value& deeper : list_of(&each)) {
        if (deeper.get<Tensor>()) masters.add(*deeper.get<Tensor>());
      }
    }
    if (masters.count() == 0) {
      fault(file.name, "has no master weights (fp32_flat_groups)");
      continue;
    }
    spread(file, list, masters, "master", ranks);
    std::map<std::string, Flat> moments;
    std::optional<double> steps;
    std::size_t stepped = 0;
    std::map<std::int64_t, const Value*> by_number;
    for (const Item& item : items_of(within(inner, {"state"})))
      by_number[item.key.get<std::int64_t>() ? *item.key.get<std::int64_t>() : 0] = &item.value;
    for (const auto& [number, value] : by_number) {
      for (const Item& item : items_of(value)) {
        const std::string key = key_text(item.key);
        if (key == "step") {
          const auto before = std::exchange(steps, number_of(&item.value));
          if (stepped++ > 0 && steps != before)
            fault(file.name, "its sub-groups have not taken the same number of steps");
        } else if (item.value.get<Tensor>() && item.value.get<Tensor>()->shape.size() == 1) {
          moments[key].add(*item.value.get<Tensor>());
        } else if (const auto group = static_cast<std::size_t>(number); group < groups.size()) {
          of_group(file, group, key, item.value, groups[group]);
        }
      }
    }
    if (stepped > 0 && stepped != by_number.size())
      fault(file.name, "says of " + std::to_string(stepped) + " of " + std::to_string(by_number.size()) +
                           " sub-groups how many steps they have taken");
    for (const auto& [kind, flat] : moments) spread(file, list, flat, kind, ranks);
    const auto& param_groups = list_of(within(inner, {"param_groups"}));
    if (!steps && !param_groups.empty()) steps = number_of(param_groups.front().find("step"));
    step(file, steps, list);
    settings(file, param_groups, groups);
  }
}

void Reader::settings(const Opened& file, const std::vector<Value>& param_groups,
                      const std::vector<std::vector<Listed>>& groups) {
  std::set<std::string> settled;
  for (const std::string& name : set_groups(file, param_groups, groups)) {
    if (!settled.insert(name).second) fault(file.name, "has the settings of " + name + " twice");
  }
  for (const auto& group : groups) {
    for (const Listed& one : group) {
      if (!settled.contains(one.name)) return fault(file.name, "has no settings of " + one.name);
    }
  }
}

std::vector<std::string> Reader::set_groups(const Opened& file, const std::vector<Value>& param_groups,
                                            const std::vector<std::vector<Listed>>& groups) {
  std::vector<std::string> names;
  for (std::size_t number = 0; number < param_groups.size(); ++number) {
    for (const Value& id : list_of(param_groups[number].find("params"))) {
      const auto place = integer_of(&id);
      if (!place || *place < 0 || static_cast<std::size_t>(*place) >= groups.size()) continue;
      hyper(file, param_groups[number], groups[static_cast<std::size_t>(*place)]);
      for (const Listed& one : groups[static_cast<std::size_t>(*place)]) {
        state_.parameter(one.name).group = static_cast<int>(number);
        names.push_back(one.name);
      }
    }
  }
  return names;
}

}  // namespace zs::checkpoints::deepspeed

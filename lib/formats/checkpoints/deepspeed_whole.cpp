// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/deepspeed_reader.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/flat.hpp"
#include "checkpoints/optimizer.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints::deepspeed {

namespace fs = std::filesystem;

void Reader::unpartitioned(const Opened& file) {
  const Value* const held = file.root.find("optimizer");
  if (!held || held->is_none()) {
    if (layers_.empty()) state_.notes.push_back(file.name + ": has no optimizer's state");
    return;
  }
  const Value* const inner = held->find("optimizer_state_dict");
  const Value& dict = inner ? *inner : *held;
  if (!is_optimizer(&dict)) {
    fault(file.name, "its optimizer's state is of a form that zs does not know");
    return;
  }
  const auto names = add_optimizer(state_, {{file.name, dict}});
  const auto& groups = list_of(held->find("fp32_groups"));
  const auto& param_groups = list_of(dict.find("param_groups"));
  for (std::size_t group = 0; group < groups.size() && group < param_groups.size(); ++group) {
    const auto& masters = list_of(&groups[group]);
    const auto& ids = list_of(param_groups[group].find("params"));
    if (masters.size() != ids.size())
      fault(file.name, "has " + std::to_string(masters.size()) + " masters of " + std::to_string(ids.size()) +
                           " parameters of group " + std::to_string(group));
    for (std::size_t i = 0; i < masters.size() && i < ids.size(); ++i) {
      const Tensor* const tensor = masters[i].get<Tensor>();
      if (!tensor) continue;
      state_.parameter(names[group][i]).master = whole(*tensor, file.name);
    }
  }
  if (!list_of(held->find("fp32_groups_flat")).empty())
    fault(file.name, "its masters are flat (fp32_groups_flat), and the file does not say whose elements they are");
  for (const char* const key : {"cur_scale", "cur_iter", "last_overflow_iter", "scale_factor", "scale_window"}) {
    if (const Value* const value = held->find(key)) add_facts(state_, std::string("scaler.") + key, *value);
  }
  const auto other = std::ranges::find_if(state_.parameters, [&](const Parameter& parameter) {
    return parameter.step && state_.step &&
           *parameter.step != static_cast<double>(*state_.step - state_.skipped.value_or(0));
  });
  if (other != state_.parameters.end())
    state_.notes.push_back("the optimizer has taken " + to_text(*other->step) + " steps at step " +
                           to_text(*state_.step) +
                           ": releases of DeepSpeed take one before the first at ZeRO-0 with 16 bits");
}

void Reader::frozen(const std::vector<Opened>& files) {
  for (const Opened& file : files) {
    const Value* const shapes = file.root.find("frozen_param_shapes");
    const Value* const fragments = file.root.find("frozen_param_fragments");
    const auto names = [](const Value* listed) {
      std::set<std::string> held;
      for (const Item& item : items_of(listed)) held.insert(key_text(item.key));
      return held;
    };
    if (names(shapes) != names(fragments))
      fault(file.name, "has other parameters in frozen_param_shapes than in frozen_param_fragments");
    for (const auto& [name, tensor] : tensors_of(fragments)) {
      Parameter& parameter = state_.parameter(name);
      parameter.frozen = true;
      // DeepSpeed loads the module, and then the fragments over it.
      if (!divided().parameters && !(parameter.weight && same_bits(joined(*parameter.weight, name), tensor)))
        fault(file.name, "has not the same " + name + " in its module and in frozen_param_fragments");
      const Value* const listed = shapes ? shapes->find(name) : nullptr;
      if (!listed || (parameter.weight && !divided().parameters)) continue;
      const Shape shape = shape_of(*listed);
      if (!parameter.weight) parameter.weight = Whole{tensor.dtype, shape};
      const std::int64_t count = parameter.weight->count();
      if (file.dp < 0 || tensor.count() == count) {
        if (parameter.weight->pieces.empty()) parameter.weight->pieces.push_back({tensor, 0, {}, file.dp, file.name});
        continue;
      }
      const std::int64_t ranks = state_.ranks.value_or(1), part = (count + ranks - 1) / ranks,
                         begin = std::min(part * file.dp, count);
      const std::int64_t held = std::min({part, count - begin, tensor.count()});
      Tensor flat = tensor;
      if (flat.shape.size() == 1 && held > 0)
        parameter.weight->pieces.push_back({run(flat, 0, held), begin, {}, file.dp, file.name});
    }
  }
}

void Reader::read_universal() {
  std::map<std::string, Listed> shapes;
  std::vector<std::vector<Listed>> lists;
  for (const auto& [mp, opened] : model_files_) {
    lists = listed(mp);
    for (const auto& group : lists) {
      for (const Listed& one : group) shapes[one.name] = one;
    }
  }
  std::vector<fs::path> folders;
  for (const fs::path& entry : entries_of(folder_ + "/zero")) {
    const std::string name = entry.filename().string();
    if (is_folder(entry))
      folders.push_back(entry);
    else if (name != "optimizer_state.pt")
      state_.unread.push_back("zero/" + name);
  }
  const std::optional<double> step = universal_groups(lists);
  bool stepped = false;  // each parameter has its own
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string();
    // DeepSpeed reads the folders of trained parameters alone. ds_to_universal.py also writes those of buffers, and of
    // another name of a tied parameter the numbers in 16 bits.
    const Parameter* const known = state_.find(name);
    if (known && known->weight && !shapes.empty() && !shapes.contains(name)) {
      state_.unread.push_back("zero/" + name + "/");
      continue;
    }
    stepped = universal_parameter(folder, shapes) || stepped;
    Parameter& parameter = state_.parameter(name);
    if (!parameter.step && !parameter.moments.empty()) parameter.step = step;
    if (!parameter.master) fault("zero/" + name, "has no fp32.pt");
  }
  require_alike(shapes, stepped);
}

std::optional<double> Reader::universal_groups(const std::vector<std::vector<Listed>>& lists) {
  const std::string name = "zero/optimizer_state.pt", path = folder_ + "/" + name;
  std::vector<Opened> opened;
  if (!fs::exists(path) || !open(name, 0, opened)) return {};
  std::optional<double> step;
  state_.files.push_back({name, fs::file_size(path), -1});
  const Value* held = opened[0].root.find("optimizer_state_dict");
  if (!held) held = &opened[0].root;
  for (const Item& item : items_of(held->find("state"))) {
    const auto number = number_of(item.value.find("step"));
    if (step && number && *number != *step) fault(name, "its groups have not taken the same number of steps");
    if (!step) step = number;
  }
  scaler(opened[0], opened[0].root);
  // Stages to 2 read the outer ones, stage 3 the inner ones.
  const Value *const outer = opened[0].root.find("param_groups"), *const inner = held->find("param_groups");
  if (inner && !(outer && text_of(*outer) == text_of(*inner)))
    fault(opened[0].name, "has not the same param_groups twice: outside and inside its optimizer_state_dict");
  const auto& groups = list_of(inner);
  if (!groups.empty() && !lists.empty() && groups.size() != lists.size())
    fault(opened[0].name,
          "has " + std::to_string(groups.size()) + " groups of settings, param_shapes " + std::to_string(lists.size()));
  set_groups(opened[0], groups, lists);
  std::set<std::map<std::string, std::string>> distinct;
  for (const Value& group : groups) distinct.insert(hyper_of(group));
  if (distinct.size() > 1)
    state_.notes.emplace_back(
        "its groups have different settings; DeepSpeed 0.18.2 and later give those of the first to all when "
        "ZeRO-3 loads a universal checkpoint");
  return step;
}

bool Reader::universal_parameter(const fs::path& folder, const std::map<std::string, Listed>& shapes) {
  const std::string name = folder.filename().string();
  Parameter& parameter = state_.parameter(name);
  bool stepped = false;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string file = "zero/" + name + "/" + entry.filename().string();
    if (!file.ends_with(".pt")) continue;
    std::vector<Opened> opened;
    if (!open(file, -1, opened)) continue;
    state_.files.push_back({file, fs::file_size(entry), -1});
    const std::string kind = entry.stem().string();
    if (kind == "step") {
      stepped = true;
      parameter.step = number_of(&opened[0].root);
      if (!parameter.step) fault(file, "holds no number of steps");
      continue;
    }
    const Tensor* tensor = opened[0].root.get<Tensor>();
    if (const Value* const inner = opened[0].root.find("param")) tensor = inner->get<Tensor>();
    if (!tensor) {
      fault(file, "holds no tensor");
      continue;
    }
    Whole stored = whole(*tensor, file);
    // From ZeRO-3 they are flat.
    if (const auto found = shapes.find(name); found != shapes.end() && tensor->count() == found->second.count)
      stored.shape = found->second.shape;
    (kind == "fp32" ? parameter.master.emplace() : parameter.moments[kind]) = stored;
  }
  return stepped;
}

void Reader::require_alike(const std::map<std::string, Listed>& shapes, bool stepped) {
  std::set<std::string> kinds;
  for (const auto& [name, one] : shapes) {
    const Parameter* const parameter = state_.find(name);
    if (!parameter || !parameter->master) fault("zero", "has no folder of the parameter " + name);
    if (!parameter) continue;
    for (const auto& [kind, moment] : parameter->moments) kinds.insert(kind);
  }
  for (const auto& [name, one] : shapes) {
    const Parameter* const parameter = state_.find(name);
    if (stepped && parameter && !fs::exists(folder_ + "/zero/" + name + "/step.pt"))
      fault("zero/" + name, "has no step.pt, which other parameters have");
    for (const std::string& kind : kinds) {
      if (parameter && !parameter->moments.contains(kind))
        fault("zero/" + name, "has no " + kind + ".pt, which other parameters have");
    }
  }
}

}  // namespace zs::checkpoints::deepspeed

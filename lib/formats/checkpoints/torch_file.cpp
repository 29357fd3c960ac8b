// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/optimizer.hpp"
#include "checkpoints/read.hpp"
#include "checkpoints/weights.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;
using tensorfile::Item;
using tensorfile::Value;

bool has_tensors(const Value* value) { return !tensors_of(value).empty(); }

/// The elements of a list or tuple, or the value alone.
std::vector<Value> each_of(const Value& value) {
  const bool many = value.get<tensorfile::List>() || value.get<tensorfile::Tuple>();
  return many ? list_of(&value) : std::vector<Value>{value};
}

bool are_optimizers(const Value* value) {
  if (!value) return false;
  const std::vector<Value> held = each_of(*value);
  return !held.empty() && std::ranges::all_of(held, [](const Value& one) { return is_optimizer(&one); });
}

/// Every tensor within `value` as a weight, and every other value as a fact, by nested names joined by dots.
void add_tree(State& into, const Value& value, const std::string& name, const std::string& file) {
  const std::string lead = name.empty() ? "" : name + ".";
  if (const auto* const tensor = value.get<tensorfile::Tensor>()) {
    into.parameter(name.empty() ? "tensor" : name).weight = whole(*tensor, file);
    return;
  }
  const auto& held = list_of(&value);
  for (std::size_t i = 0; i < held.size(); ++i) add_tree(into, held[i], lead + std::to_string(i), file);
  const auto* const dict = value.get<tensorfile::Dict>();
  if (dict) {
    for (const Item& item : dict->items) add_tree(into, item.value, lead + key_text(item.key), file);
  }
  if (held.empty() && (!dict || dict->items.empty())) add_facts(into, "training." + name, value);
}

}  // namespace

State read_torch_file(const std::string& path) {
  State state;
  state.path = path;
  state.folder = fs::path(path).parent_path().string();
  if (state.folder.empty()) state.folder = ".";
  const std::string file = fs::path(path).filename().string();
  const Value root = tensorfile::read_torch_objects(path);
  state.files.push_back({file, fs::file_size(path), -1});
  state.layout = "one file";
  note_content(state, root);
  const Value* const lightning = root.find("pytorch-lightning_version");
  state.framework = lightning ? "Lightning" : "PyTorch";
  if (lightning && lightning->get<std::string>()) state.version = *lightning->get<std::string>();
  const Value *model = nullptr, *optimizer = nullptr;
  for (const char* const key : {"state_dict", "model_state_dict", "model", "module", "net", "weights", "params"}) {
    if (!model && has_tensors(root.find(key))) model = root.find(key);
  }
  for (const char* const key : {"optimizer_states", "optimizer_state_dict", "optimizer", "optim", "opt"}) {
    if (!optimizer && are_optimizers(root.find(key))) optimizer = root.find(key);
  }
  if (!optimizer && is_optimizer(&root)) optimizer = &root;
  // A tensor next to a model is a random state, or a counter; alone it is a weight.
  if (!model && !optimizer && has_tensors(&root)) model = &root;
  if (model) add_weights(state, model, file);
  if (optimizer) {
    std::vector<std::pair<std::string, Value>> dicts;
    for (const Value& one : each_of(*optimizer)) dicts.emplace_back(file, one);
    add_optimizer(state, dicts);
  }
  if (!model && !optimizer) {
    add_tree(state, root, "", file);
    if (state.parameters.empty()) throw Error(path, 0, "holds neither weights nor an optimizer's state that zs knows");
    return state;
  }
  for (const char* const key : {"global_step", "step", "iteration", "iter", "iter_num", "steps"}) {
    if (!state.step && model != &root) state.step = integer_of(root.find(key));
  }
  for (const Item& item : items_of(&root)) {
    const std::string key = key_text(item.key);
    if (&item.value == model || model == &root || &item.value == optimizer || &root == optimizer) continue;
    if (key == "lr_schedulers" || key == "lr_scheduler" || key == "scheduler" || key == "scheduler_state_dict") {
      add_schedules(state, each_of(item.value));
    } else if (key.find("scaler") != std::string::npos) {
      add_facts(state, "scaler", item.value);
    } else if (key.find("rng") != std::string::npos || key.find("random") != std::string::npos) {
      add_facts(state, "random." + key, item.value);
    } else if (!item.value.is_none()) {
      add_facts(state, "training." + key, item.value);
    }
  }
  return state;
}

}  // namespace zs::checkpoints

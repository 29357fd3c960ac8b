// SPDX-License-Identifier: Apache-2.0
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

/// The first element, if it is a list.
const Value* first_of(const Value* value) {
  const auto* const list = value ? value->get<tensorfile::List>() : nullptr;
  return list && !list->values.empty() ? &list->values.front() : list ? nullptr : value;
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
  note_objects(state, root);
  const Value* const lightning = root.find("pytorch-lightning_version");
  state.framework = lightning ? "Lightning" : "PyTorch";
  if (lightning && lightning->get<std::string>()) state.version = *lightning->get<std::string>();
  const Value *model = nullptr, *optimizer = nullptr;
  for (const char* const key : {"state_dict", "model_state_dict", "model", "module", "net", "weights", "params"}) {
    if (!model && has_tensors(root.find(key))) model = root.find(key);
  }
  for (const char* const key : {"optimizer_states", "optimizer_state_dict", "optimizer", "optim", "opt"}) {
    const Value* const found = first_of(root.find(key));
    if (!optimizer && is_optimizer(found)) optimizer = found;
  }
  if (!optimizer && is_optimizer(&root)) optimizer = &root;
  // A tensor next to a model is a random state, or a counter; alone it is a weight.
  if (!model && !optimizer && has_tensors(&root)) model = &root;
  if (model) add_weights(state, model, file);
  if (optimizer) add_optimizer(state, *optimizer, file);
  if (!model && !optimizer) {
    add_tree(state, root, "", file);
    if (state.parameters.empty()) throw Error(path, 0, "holds neither weights nor an optimizer's state that zs knows");
    return state;
  }
  if (const std::size_t count = list_of(root.find("optimizer_states")).size(); count > 1)
    state.fault(path, "has the states of " + std::to_string(count) + " optimizers; zs reads the first alone");
  for (const char* const key : {"global_step", "step", "iteration", "iter", "iter_num", "steps"}) {
    if (!state.step && model != &root) state.step = integer_of(root.find(key));
  }
  for (const Item& item : items_of(&root)) {
    const std::string key = key_text(item.key);
    if (&item.value == model || model == &root || first_of(&item.value) == optimizer || &root == optimizer) continue;
    if (key == "lr_schedulers" || key == "lr_scheduler" || key == "scheduler" || key == "scheduler_state_dict") {
      if (const Value* const first = first_of(&item.value)) add_facts(state, "schedule", *first);
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

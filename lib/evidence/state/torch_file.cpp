// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "state/fact.hpp"
#include "state/optimizer.hpp"
#include "state/read.hpp"
#include "state/weights.hpp"
#include "tensorfile/torch.hpp"

namespace zs::state {
namespace {

namespace fs = std::filesystem;
using tensorfile::Item;
using tensorfile::Value;

const tensorfile::Dict* dict_of(const Value* value) { return value ? value->get<tensorfile::Dict>() : nullptr; }

bool has_tensors(const Value* value) { return !tensors_of(value).empty(); }

/// The first element, if it is a list.
const Value* first_of(const Value* value) {
  const auto* const list = value ? value->get<tensorfile::List>() : nullptr;
  return list && !list->values.empty() ? &list->values.front() : list ? nullptr : value;
}

}  // namespace

void add_weights(State& into, const Value* dict, const std::string& file, int rank) {
  std::map<std::tuple<const tensorfile::Storage*, std::int64_t, tensorfile::Shape>, std::string> seen;
  for (const auto& [name, tensor] : tensors_of(dict)) {
    Parameter& parameter = into.parameter(name);
    parameter.weight = whole(tensor, file, rank);
    const auto [found, fresh] = seen.emplace(std::tuple{tensor.storage.get(), tensor.offset, tensor.shape}, name);
    if (!fresh && tensor.count() > 0) parameter.tied = found->second;
  }
}

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
  if (!dict_of(&root))
    throw Error(path, 0, "holds a " + std::string(root.type_name()) + ", expected a dict of tensors");
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
  if (!model && !optimizer) throw Error(path, 0, "holds neither weights nor an optimizer's state that zs knows");
  if (const auto* const list =
          root.find("optimizer_states") ? root.find("optimizer_states")->get<tensorfile::List>() : nullptr;
      list && list->values.size() > 1)
    state.faults.push_back(located(
        path, 0, "has the states of " + std::to_string(list->values.size()) + " optimizers; zs reads the first alone"));
  for (const char* const key : {"global_step", "step", "iteration", "iter", "iter_num", "steps"}) {
    if (!state.step && model != &root) state.step = integer_of(root.find(key));
  }
  for (const Item& item : dict_of(&root)->items) {
    const std::string key = key_text(item.key);
    if (&item.value == model || model == &root || key.starts_with("optim") || key == "opt" || &root == optimizer)
      continue;
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

}  // namespace zs::state

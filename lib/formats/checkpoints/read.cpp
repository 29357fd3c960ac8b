// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/read.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/mapped.hpp"
#include "base/number.hpp"
#include "checkpoints/dcp.hpp"
#include "checkpoints/deepspeed.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/folders.hpp"
#include "checkpoints/optimizer.hpp"
#include "checkpoints/state.hpp"
#include "checkpoints/sums.hpp"
#include "checkpoints/weights.hpp"
#include "tensorfile/state_dict.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

// The files of Megatron-core's torch_dist beside PyTorch's distributed checkpoint: `common.pt` has what all ranks
// share, the iteration, arguments, schedule, and the optimizer's groups with its step; `metadata.json` is written last.
// Format: megatron/core/dist_checkpointing/serialization.py, optimizer/distrib_optimizer.py.

using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::Value;
using Settings = std::map<std::string, std::string>;

constexpr const char* kCommon = "common.pt";

/// The settings of all groups below a value: those of one optimizer, or of a chain of them.
void collect_groups(const Value& value, std::vector<Settings>& groups) {
  for (const Value& each : list_of(&value)) collect_groups(each, groups);
  const Dict* const dict = value.get<Dict>();
  if (!dict) return;
  for (const Item& item : dict->items) {
    if (key_text(item.key) != "param_groups") {
      collect_groups(item.value, groups);
      continue;
    }
    for (const Value& group : list_of(&item.value)) groups.push_back(hyper_of(group));
  }
}

/// A group's weight decay is the product of two settings.
void multiply_decay(Settings& group) {
  const auto decay = group.find("weight_decay"), factor = group.find("wd_mult");
  if (decay == group.end() || factor == group.end()) return;
  const auto a = parse_real(decay->second), b = parse_real(factor->second);
  if (a && b) decay->second = to_text(*a * *b);
}

/// The settings that are the same in all groups: the file does not say whose each group is.
Settings common_to(std::vector<Settings> groups) {
  Settings common;
  for (Settings& group : groups) multiply_decay(group);
  if (!groups.empty()) common = groups.front();
  for (const Settings& group : groups) {
    std::erase_if(common, [&](const auto& setting) {
      const auto found = group.find(setting.first);
      return found == group.end() || found->second != setting.second;
    });
  }
  return common;
}

void take_groups(State& into, const std::vector<Settings>& groups, const std::string& path) {
  if (groups.empty()) return;
  std::set<std::string> steps;
  for (const Settings& group : groups) {
    if (const auto step = group.find("step"); step != group.end()) steps.insert(step->second);
  }
  if (steps.size() > 1) {
    into.faults.push_back(
        located(path, 0,
                "mixes steps: one group of the optimizer is at " + *steps.begin() + ", another at " + *steps.rbegin()));
    return;
  }
  const auto step = steps.empty() ? std::nullopt : parse_real(*steps.begin());
  Settings common = common_to(groups);
  common.erase("step");
  for (Parameter& parameter : into.parameters) {
    if (parameter.moments.empty()) continue;
    parameter.step = step;
    for (const auto& [key, text] : common) parameter.hyper.emplace(key, text);
  }
}

void take(State& into, const std::string& key, const Value& value) {
  if (key == "iteration" && !into.step) into.step = integer_of(&value);
  if (key == "args") {
    if (const auto ranks = integer_of(value.find("world_size"))) into.ranks = *ranks;
  }
  const bool schedule = key == "opt_param_scheduler" || key == "lr_scheduler";
  add_facts(into, schedule ? "schedule" : key == "optimizer" ? key : "training." + key, value);
}

/// Whether the folder has these files.
bool is_megatron(const std::string& folder) {
  return is_there(folder + "/metadata.json") && is_there(folder + "/" + kCommon);
}

/// Adds their content to what add_dcp() read. A damaged file, and groups at different steps, are faults of the state.
void add_megatron(State& into, const std::string& folder) {
  into.framework = "Megatron-core";
  into.ordered = false;  // a name stands for the tensors of all layers
  into.ranks.reset();    // the ranks that wrote files: others had the same, and wrote none
  const std::string path = folder + "/" + kCommon;
  try {
    const Value common = tensorfile::read_torch_objects(path);
    note_objects(into, common);
    const Dict* const dict = common.get<Dict>();
    if (!dict) throw Error(path, 0, "holds a " + std::string(common.type_name()) + ", expected a dict");
    std::vector<Settings> groups;
    for (const Item& item : dict->items) {
      take(into, key_text(item.key), item.value);
      if (key_text(item.key) == "optimizer") collect_groups(item.value, groups);
    }
    for (const auto& [name, value] : into.values) {  // an object of each data-parallel group
      if (name.starts_with("optimizer.distributed.")) collect_groups(value, groups);
    }
    take_groups(into, groups, path);
  } catch (const Error& error) {
    into.faults.emplace_back(error.what());
  }
  for (const char* const name : {kCommon, "metadata.json"}) {
    std::erase(into.unread, name);
    std::error_code failure;
    const auto bytes = std::filesystem::file_size(folder + "/" + name, failure);
    into.files.push_back({name, failure ? 0 : bytes, -1});
  }
  for (const auto& [name, text] : into.facts) {
    if (name.find(".gbuf_idx_") == std::string::npos) continue;
    into.notes.emplace_back(
        "the optimizer's masters and moments are flat buckets (dp_reshardable), and only the program that wrote them "
        "knows whose elements are where: save with distrib_optim_sharding_type fully_reshardable");
    break;
  }
}

namespace fs = std::filesystem;

State read_dcp(const std::string& folder) {
  State state;
  state.path = state.folder = folder;
  state.framework = "PyTorch distributed checkpoint";
  add_dcp(state, folder);
  state.layout = "sharded";
  const std::string name = fs::path(folder).filename().string();
  if (is_megatron(folder)) add_megatron(state, folder);
  for (const char* const prefix : {"step-", "iter_", "global_step", "checkpoint-"}) {
    if (!state.step && name.starts_with(prefix)) {
      const std::string digits = name.substr(std::string_view(prefix).size());
      if (!digits.empty() && digits.size() < 18 && digits.find_first_not_of("0123456789") == std::string::npos)
        state.step = std::stoll(digits);
    }
  }
  if (state.parameters.empty() && state.faults.empty()) throw Error(folder, 0, "holds no tensors");
  return state;
}

State read_any(const std::string& path);

/// Where one trained parameter has a weight, each has; and a tied one has an owner.
void require_weights(State& state) {
  const auto trained = [](const Parameter& one) {
    return (one.master || !one.moments.empty()) && !one.name.starts_with('#');
  };
  const auto has = std::ranges::find_if(state.parameters, [&](const auto& one) { return trained(one) && one.weight; });
  for (const Parameter& one : state.parameters) {
    const Parameter* const owner = one.tied.empty() ? nullptr : state.find(one.tied);
    if (has != state.parameters.end() && trained(one) && !one.weight && one.tied.empty())
      state.faults.push_back(located(state.folder + "/" + has->weight->pieces.front().file, 0,
                                     "has no weight of " + one.name + ", which the optimizer has"));
    if (owner && !owner->weight && !owner->master)
      state.faults.push_back(located(state.folder, 0, one.name + ": is tied to " + one.tied + ", which is in no file"));
  }
}

State read_any(const std::string& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (!fs::exists(status))
    throw Error(path, 0, failure && failure.value() == ELOOP ? failure.message() : "there is no such file or folder");
  if (!fs::is_directory(status)) {
    if (!fs::is_regular_file(status)) throw Error(path, 0, "is not a regular file");
    const auto mapping = Mapping::open(path);
    const std::string_view bytes = mapping->bytes();
    if (path.ends_with(".safetensors") || path.ends_with(".index.json") ||
        (bytes.size() > 8 && bytes[8] == '{' && !bytes.starts_with("PK"))) {
      State state;
      state.path = path;
      state.folder = fs::path(path).parent_path().string();
      if (state.folder.empty()) state.folder = ".";
      state.framework = "safetensors", state.layout = "one file";
      add_model(state, path);
      state.files.push_back({fs::path(path).filename().string(), bytes.size(), -1});
      return state;
    }
    return read_torch_file(path);
  }
  if (is_there(path + "/accelerator_states") || is_there(path + "/" + kSums)) return read_zs(path);
  if (is_dcp(path)) return read_dcp(path);
  if (is_deepspeed(path)) return read_deepspeed(path);
  const bool known = tensorfile::has_state_dict(path) || is_trainers(path);
  if (!known) {
    // One file of a trainer, or folders of checkpoints.
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(path)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file(failure) && (name.ends_with(".ckpt") || holds_tensors(entry.path().string())))
        files.push_back(entry.path().string());
    }
    if (files.size() == 1) return read_any(files[0]);
    if (const auto inner = checkpoints_in(path); !inner.empty() && files.empty()) {
      State state = read_any(inner.back().path);
      state.path = path;
      return state;
    }
    if (files.size() > 1) {
      std::sort(files.begin(), files.end());
      throw Error(path, 0,
                  "holds " + std::to_string(files.size()) +
                      " files of tensors that belong to no layout that zs knows: name one, such as " + files[0]);
    }
  }
  return read_folder(path);
}

}  // namespace

State read(const std::string& path) {
  State state = read_any(path);
  require_weights(state);
  return state;
}

}  // namespace zs::checkpoints

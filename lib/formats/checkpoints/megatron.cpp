// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/read.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/optimizer.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::Value;
using Settings = std::map<std::string, std::string>;

constexpr const char* kCommon = "common.pt";

/// The settings of all groups below a value: of one optimizer, or of a chain of them.
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

/// The settings that are the same in all groups: the file does not say which parameters a group has.
Settings common_to(std::vector<Settings> groups) {
  Settings common;
  for (Settings& group : groups) multiply_decay(group);
  if (!groups.empty()) common = groups.front();
  for (const Settings& group : groups) {
    std::erase_if(common,
                  [&](const auto& one) { return !group.contains(one.first) || group.at(one.first) != one.second; });
  }
  return common;
}

void take_groups(State& into, const std::vector<Settings>& groups, const std::string& path) {
  if (groups.empty()) return;
  std::set<std::string> steps;
  for (const Settings& group : groups) {
    if (const auto step = group.find("step"); step != group.end()) steps.insert(step->second);
  }
  if (steps.size() > 1)
    return into.fault(
        path, "mixes steps: one group of the optimizer is at " + *steps.begin() + ", another at " + *steps.rbegin());
  const auto step = steps.empty() ? std::nullopt : parse_real(*steps.begin());
  Settings common = common_to(groups);
  common.erase("step");
  for (Parameter& parameter : into.parameters) {
    if (parameter.moments.empty()) continue;
    parameter.step = step;
    for (const auto& [key, text] : common) parameter.hyper.emplace(key, text);
  }
}

void take_item(State& into, const std::string& key, const Value& value) {
  if (key == "iteration" && !into.step) into.step = integer_of(&value);
  if (key == "args") {
    if (const auto ranks = integer_of(value.find("world_size"))) into.ranks = *ranks;
  }
  const bool schedule = key == "opt_param_scheduler" || key == "lr_scheduler";
  add_facts(into, schedule ? "schedule" : key == "optimizer" ? key : "training." + key, value);
}

}  // namespace

bool is_megatron(const std::string& folder) {
  return is_there(folder + "/metadata.json") && is_there(folder + "/" + kCommon);
}

void add_megatron(State& into, const std::string& folder) {
  into.framework = "Megatron-core";
  into.ordered = false;  // a name stands for the tensors of all layers
  into.ranks.reset();    // the ranks that wrote files: others had the same, and wrote none
  const std::string path = folder + "/" + kCommon;
  into.attempt([&] {
    const Value common = tensorfile::read_torch_objects(path);
    note_content(into, common);
    const Dict* const dict = common.get<Dict>();
    if (!dict) throw Error(path, 0, "holds a " + std::string(common.type_name()) + ", expected a dict");
    std::vector<Settings> groups;
    for (const Item& item : dict->items) {
      take_item(into, key_text(item.key), item.value);
      if (key_text(item.key) == "optimizer") collect_groups(item.value, groups);
    }
    for (const auto& [name, value] : into.values) {  // an object of each data-parallel group
      if (name.starts_with("optimizer.distributed.")) collect_groups(value, groups);
    }
    take_groups(into, groups, path);
  });
  for (const char* const name : {kCommon, "metadata.json"}) {
    std::erase(into.unread, name);
    std::error_code failure;
    const auto bytes = std::filesystem::file_size(folder + "/" + name, failure);
    into.files.push_back({name, failure ? 0 : bytes, -1});
  }
  if (std::ranges::any_of(into.facts,
                          [](const auto& fact) { return fact.first.find(".gbuf_idx_") != std::string::npos; }))
    into.notes.emplace_back(
        "the optimizer's masters and moments are flat buckets (dp_reshardable), and only the program that wrote them "
        "knows whose elements are where: save with distrib_optim_sharding_type fully_reshardable");
}

}  // namespace zs::checkpoints

// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/state_dict.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/words.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/torch.hpp"

namespace zs::tensorfile {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> kFiles = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                               "pytorch_model.bin.index.json"};
constexpr std::array<std::string_view, 4> kInner = {"state_dict", "model_state_dict", "model", "module"};

bool has_tensors(const Value& value) {
  const Dict* const dict = value.get<Dict>();
  return dict && std::ranges::any_of(dict->items, [](const Item& item) { return item.value.get<Tensor>(); });
}

void add_torch(StateDict& into, const std::string& path) {
  const Value root = read_torch(path);
  const Value* chosen = &root;
  if (!root.get<Dict>())
    throw Error(path, 0, "holds a " + std::string(root.type_name()) + ", expected a dict of tensors");
  if (!has_tensors(root)) {
    std::vector<const Value*> inner;
    for (const std::string_view name : kInner) {
      const Value* const found = root.find(name);
      if (found && has_tensors(*found)) inner.push_back(found);
    }
    if (inner.size() == 1) chosen = inner.front();
  }
  if (chosen != &root) {
    for (const Item& item : root.get<Dict>()->items) {
      const std::string* const name = item.key.get<std::string>();
      if (&item.value != chosen) into.add_other(name ? *name : std::string(item.key.type_name()));
    }
  }
  for (const Item& item : chosen->get<Dict>()->items) {
    const std::string* const name = item.key.get<std::string>();
    const Tensor* const tensor = item.value.get<Tensor>();
    if (name && tensor) {
      into.add(*name, *tensor);
    } else {
      into.add_other(name ? *name : std::string(item.key.type_name()));
    }
  }
}

void add_file(StateDict& into, const std::string& path) {
  char start[9] = {};
  {
    const std::shared_ptr<const Mapping> file = Mapping::open(path);
    if (file->bytes().starts_with("version https://git-lfs"))
      throw Error(path, 0, "is Git LFS's pointer to the file: fetch the file itself, by git lfs pull");
    file->bytes().copy(start, sizeof start);
  }
  // The 9th byte of a safetensors file is its header's brace; a damaged one is still known by its name.
  if (start[8] == '{' || path.ends_with(".safetensors")) {
    for (auto& [name, tensor] : read_safetensors(path).tensors) into.add(std::move(name), std::move(tensor));
  } else {
    add_torch(into, path);
  }
}

// {"weight_map": {NAME: FILE, ...}}: files next to the index.
void add_index(StateDict& into, const std::string& path) {
  using Json = nlohmann::ordered_json;
  const std::shared_ptr<const Mapping> file = Mapping::open(path);
  const Json index = Json::parse(file->bytes(), nullptr, false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw Error(path, 0, "malformed index: expected {\"weight_map\": {NAME: FILE}}");
  }
  std::map<std::string, StateDict> shards;
  std::set<std::string> wanted, named, missing;
  for (const auto& [name, value] : index["weight_map"].items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    if (named.insert(shard).second && !shard.empty() && !fs::exists(fs::path(path).parent_path() / shard))
      missing.insert(shard);
  }
  if (!missing.empty() && named.size() > 1)
    throw Error(path, 0,
                "names " + std::to_string(named.size()) + " files of weights, and " + std::to_string(missing.size()) +
                    " of them are not beside it, the first " + *missing.begin());
  for (const auto& [name, value] : index["weight_map"].items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos) {
      throw Error(path, 0, name + ": malformed index: expected the name of a file in the same folder");
    }
    const std::string place = (fs::path(path).parent_path() / shard).string();
    const auto [found, fresh] = shards.try_emplace(shard, place);
    if (fresh) add_file(found->second, place);
    const Tensor* const tensor = found->second.find(name);
    if (!tensor) throw Error(place, 0, name + ": no such tensor, but the index says so");
    into.add(name, *tensor);
    wanted.insert(name);
  }
  for (const auto& [shard, dict] : shards) {
    for (const StateDict::Entry& entry : dict.entries()) {
      if (!wanted.contains(entry.name)) into.add_other(entry.name);
    }
    for (const std::string& other : dict.others()) into.add_other(other);
  }
}

std::string choose(const std::string& folder) {
  for (const char* const name : kFiles) {
    const fs::path candidate = fs::path(folder) / name;
    if (fs::exists(candidate)) return candidate.string();
  }
  throw Error(folder, 0, "no weights in this folder, looked for " + joined(kFiles));
}

}  // namespace

void StateDict::add(std::string name, Tensor tensor) {
  if (!places_.emplace(name, entries_.size()).second) throw Error(path_, 0, name + ": two tensors of one name");
  entries_.push_back({std::move(name), std::move(tensor)});
}

const Tensor* StateDict::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second].tensor;
}

const Tensor& StateDict::at(std::string_view name) const {
  if (const Tensor* const tensor = find(name)) return *tensor;
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  throw Error(path_, 0, "no tensor '" + std::string(name) + "'" + did_you_mean(name, names));
}

std::size_t StateDict::verify() const {
  std::set<StoragePtr> storages;
  for (const Entry& entry : entries_) storages.insert(entry.tensor.storage);
  return static_cast<std::size_t>(
      std::ranges::count_if(storages, [](const StoragePtr& storage) { return storage->verify(); }));
}

bool has_state_dict(const std::string& folder) {
  return std::ranges::any_of(kFiles, [&](const char* name) { return fs::exists(fs::path(folder) / name); });
}

StateDict open_state_dict(const std::string& path) {
  const std::string file = fs::is_directory(path) ? choose(path) : path;
  StateDict dict(file);
  if (file.ends_with(".index.json")) {
    add_index(dict, file);
  } else {
    add_file(dict, file);
  }
  if (dict.entries().empty()) throw Error(file, 0, "holds no tensors");
  return dict;
}

}  // namespace zs::tensorfile

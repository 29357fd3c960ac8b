// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/dcp.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include <re2/re2.h>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/read.hpp"
#include "tensorfile/pickle.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;
using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::Object;
using tensorfile::Shape;
using tensorfile::Tensor;
using tensorfile::Value;

/// The numbers of a torch.Size or tuple; nothing if it is neither.
std::optional<Shape> sizes_of(const Value* value) {
  const auto* const tuple = value ? value->get<tensorfile::Tuple>() : nullptr;
  if (!tuple) return {};
  Shape shape;
  for (const Value& size : tuple->values) {
    if (!size.get<std::int64_t>() || *size.get<std::int64_t>() < 0) return {};
    shape.push_back(*size.get<std::int64_t>());
  }
  return shape;
}

/// The keys of a path joined by points, those within a part of a parameter's state by '/', as in Parameter::moments.
std::string joined_path(const std::vector<std::string>& path) {
  std::string name;
  std::size_t in_state = 0;  // keys from "state" on: it, the parameter, the part
  for (const std::string& text : path) {
    name += (name.empty() ? "" : in_state > 2 ? "/" : ".") + text;
    if (in_state > 0 || (text == "state" && (name == text || name.find("optim") != name.npos))) ++in_state;
  }
  return name;
}

/// The place of a part.
struct Stored {
  std::string file;
  std::uint64_t offset = 0, length = 0;
};

class DcpReader {
 public:
  DcpReader(State& into, const std::string& folder, const std::string& place)
      : state_(into), folder_(folder), place_(place), path_(folder + "/.metadata"), megatron_(is_megatron(folder)) {}

  void read() {
    if (!is_file(path_))
      throw Error(path_, 0, "is missing, and is written last: the save did not end; take an older checkpoint");
    const auto mapping = Mapping::open(path_);
    if (mapping->bytes().empty()) throw Error(path_, 0, "is empty");
    const auto none = [&](const std::string&) -> tensorfile::StoragePtr {
      throw Error(path_, 0, "refers to a storage, which no .metadata has");
    };
    const Value root = tensorfile::unpickle(mapping->bytes(), path_, none, tensorfile::Names::any);
    const Value* const entries = root.find("state_dict_metadata");
    const Value* const stored = root.find("storage_data");
    if (!entries || !entries->get<Dict>() || !stored || !stored->get<Dict>())
      throw Error(path_, 0, "has no state_dict_metadata and storage_data: is it of PyTorch's distributed checkpoints?");
    if (const Value* const version = root.find("version");
        version && version->get<std::string>() && state_.version.empty())
      state_.version = "format " + *version->get<std::string>();
    index(*stored->get<Dict>());
    paths(root.find("planner_data"));
    for (const Item& item : entries->get<Dict>()->items) {
      const std::string fqn = key_text(item.key);
      const Object* const object = item.value.get<Object>();
      if (object && object->name.ends_with("TensorStorageMetadata"))
        tensor(fqn, *object);
      else if (object && object->name.ends_with("BytesStorageMetadata"))
        bytes(fqn);
      else
        fault(".metadata", fqn + ": neither a tensor nor bytes");
    }
    files();
  }

 private:
  State& state_;
  std::string folder_, place_, path_;
  bool megatron_;
  std::map<std::string, std::map<Shape, Stored>> parts_;  // fqn -> first index -> place
  std::map<std::string, Stored> bytes_;
  std::map<std::string, std::string> fqns_;
  std::map<std::string, std::shared_ptr<const Mapping>> opened_;
  std::map<std::string, std::map<std::string, Tensor>> safetensors_;
  std::set<std::string> broken_;  // files with a reported fault
  int highest_ = -1;

  void fault(const std::string& file, const std::string& what) {
    if (broken_.insert(file + what).second) state_.fault(folder_ + "/" + file, what);
  }

  void index(const Dict& dict) {
    for (const Item& item : dict.items) {
      const Value *const fqn = item.key.find("fqn"), *const path = item.value.find("relative_path");
      const auto offset = integer_of(item.value.find("offset")), length = integer_of(item.value.find("length"));
      if (!fqn || !fqn->get<std::string>() || !path || !path->get<std::string>() || !offset || !length || *offset < 0 ||
          *length < 0) {
        fault(".metadata", "has an entry of storage_data that says no place");
        continue;
      }
      const std::string& name = *path->get<std::string>();
      if (name.empty() || name.find('/') != std::string::npos || name == "." || name == ".." ||
          name.find('\0') != std::string::npos) {
        fault(".metadata", *fqn->get<std::string>() + ": is in '" + name + "', which is no file of this folder");
        continue;
      }
      if (const Value* const packed = item.value.find("transform_descriptors"); packed && !packed->is_none()) {
        fault(name, "is compressed (transform_descriptors), which zs does not read");
        continue;
      }
      const Stored stored{name, static_cast<std::uint64_t>(*offset), static_cast<std::uint64_t>(*length)};
      const auto at = sizes_of(item.key.find("offset"));
      if (!at)
        bytes_[*fqn->get<std::string>()] = stored;
      else if (!parts_[*fqn->get<std::string>()].emplace(*at, stored).second)
        fault(name,
              *fqn->get<std::string>() + ": two entries of storage_data for the part at " + tensorfile::to_text(*at));
      highest_ = std::max(highest_, rank_of(name));
    }
  }

  /// Names may contain dots: planner_data says where they divide. A program may save all its parts under one key, as
  /// PyTorch's tutorial does under "app": the key is left out.
  void paths(const Value* planner) {
    std::map<std::string, std::vector<std::string>> paths;
    std::set<std::string> outer;
    for (const Item& item : items_of(planner)) {
      auto& path = paths[key_text(item.key)];
      for (const Value& part : list_of(&item.value)) path.push_back(key_text(part));
      if (path.size() > 2 && path[1] == "model") outer.insert(path[0]);
    }
    for (auto& [fqn, path] : paths) {
      if (outer.size() == 1 && path.size() > 1 && outer.contains(path[0])) path.erase(path.begin());
      if (!path.empty()) fqns_[fqn] = joined_path(path);
    }
  }

  Key key(const std::string& fqn) const {
    const auto known = fqns_.find(fqn);
    return key_of(known == fqns_.end() ? fqn : known->second, megatron_);
  }

  std::shared_ptr<const Mapping> open(const std::string& file) {
    auto& mapping = opened_[file];
    if (mapping || broken_.contains(file)) return mapping;
    if (const int rank = rank_of(file); !is_there(folder_ + "/" + file)) {
      broken_.insert(file);
      state_.fault(folder_ + "/" + file,
                   rank < 0 ? "is missing" : "is missing: the file of rank " + std::to_string(rank));
    } else if (!state_.attempt([&] { mapping = Mapping::open(folder_ + "/" + file); })) {
      broken_.insert(file);
    }
    return mapping;
  }

  static int rank_of(const std::string& file) {
    int rank = -1;
    std::sscanf(file.c_str(), "__%d_", &rank);
    return rank;
  }

  /// The stored value. Nothing, and a fault, if it cannot be read.
  std::optional<Value> read(const Stored& stored, const std::string& fqn) {
    const auto mapping = open(stored.file);
    if (!mapping) return {};
    const std::string_view bytes = mapping->bytes();
    if (stored.offset > bytes.size() || stored.length > bytes.size() - stored.offset) {
      if (broken_.insert(stored.file).second)
        state_.fault(folder_ + "/" + stored.file,
                     "is cut short: " + fqn + " needs bytes " + std::to_string(stored.offset) + " to " +
                         std::to_string(stored.offset + stored.length) + " of " + std::to_string(bytes.size()));
      return {};
    }
    try {
      Value value = tensorfile::read_torch_objects(mapping, bytes.substr(stored.offset, stored.length),
                                                   folder_ + "/" + stored.file + ": " + fqn);
      note_content(state_, value);
      return value;
    } catch (const Error& error) {
      if (broken_.insert(stored.file + " damaged").second) state_.faults.emplace_back(error.what());
      return {};
    }
  }

  /// In a file of safetensors the parts have names, and storage_data no offsets.
  bool is_safetensors(const Stored& stored) {
    const auto mapping = open(stored.file);
    const std::string_view bytes = mapping ? mapping->bytes() : std::string_view();
    return bytes.size() > 9 && bytes[8] == '{' && !bytes.starts_with("PK");
  }

  std::optional<Tensor> part(const Stored& stored, const std::string& fqn) {
    if (is_safetensors(stored)) {
      auto& held = safetensors_[stored.file];
      try {
        if (held.empty()) {
          for (auto& [name, tensor] : tensorfile::read_safetensors(folder_ + "/" + stored.file).tensors)
            held[name] = tensor;
        }
      } catch (const Error& error) {
        fault(stored.file, error.what());
      }
      const auto found = held.find(fqn);
      if (found != held.end()) return found->second;
      fault(stored.file, fqn + ": no such tensor, but .metadata says so");
      return {};
    }
    const auto value = read(stored, fqn);
    if (!value) return {};
    if (const Tensor* const tensor = value->get<Tensor>()) return *tensor;
    fault(stored.file, fqn + ": holds a " + std::string(value->type_name()) + ", expected a tensor");
    return {};
  }

  void tensor(const std::string& fqn, const Object& object) {
    const auto size = sizes_of(object.find("size"));
    const Value* const chunks = object.find("chunks");
    const auto* const list = chunks ? chunks->get<tensorfile::List>() : nullptr;
    if (!size || !list || size->size() > 64) return fault(".metadata", fqn + ": has no size and chunks");
    std::int64_t elements = 1;
    for (const std::int64_t extent : *size) {
      if (__builtin_mul_overflow(elements, extent, &elements)) return fault(".metadata", fqn + ": is too large");
    }
    Whole whole;
    whole.shape = *size;
    bool typed = false;
    for (const Value& chunk : list->values) {
      const auto at = sizes_of(chunk.find("offsets")), extent = sizes_of(chunk.find("sizes"));
      if (!at || !extent || at->size() != size->size() || extent->size() != size->size()) {
        fault(".metadata", fqn + ": has a chunk without offsets and sizes");
        continue;
      }
      const auto& held = parts_[fqn];
      auto found = held.find(*at);
      if (found == held.end()) {
        fault(".metadata",
              fqn + ": storage_data has no part at " + tensorfile::to_text(*at) + ", which the list of chunks has");
        continue;
      }
      auto tensor = part(found->second, fqn);
      if (!tensor) continue;
      if (tensor->shape != *extent && tensor->count() == Whole{tensor->dtype, *extent}.count())
        tensor->shape = *extent, tensor->strides = tensorfile::row_major(*extent);
      if (tensor->shape != *extent) {
        fault(found->second.file, fqn + ": has the shape " + tensorfile::to_text(tensor->shape) + " at " +
                                      tensorfile::to_text(*at) + ", expected " + tensorfile::to_text(*extent));
        continue;
      }
      if (!typed) whole.dtype = tensor->dtype, typed = true;
      add_box(whole, {*tensor, 0, *at, rank_of(found->second.file), place_ + found->second.file});
    }
    settle(key(fqn), std::move(whole), fqn);
  }

  void settle(const Key& key, Whole whole, const std::string& fqn) {
    const bool of_parameter = key.kind != Key::Kind::fact && key.kind != Key::Kind::hyper;
    if (whole.pieces.empty() && whole.count() > 0 && of_parameter)
      fault(".metadata", fqn + ": none of its parts can be read");
    switch (key.kind) {
      case Key::Kind::weight:
        return void(state_.parameter(key.name).weight = std::move(whole));
      case Key::Kind::master:
        return void(state_.parameter(key.name).master = std::move(whole));
      case Key::Kind::moment:
        return void(state_.parameter(key.name).moments[key.moment] = std::move(whole));
      case Key::Kind::step:
      case Key::Kind::hyper:
      case Key::Kind::fact:
        if (whole.pieces.empty()) return;
        state_.attempt([&] { fact(key, Value(joined(whole, path_ + ": " + fqn))); });
    }
  }

  void fact(const Key& key, const Value& value) {
    if (key.kind == Key::Kind::hyper && !key.name.empty()) {
      const auto number = value.get<Tensor>() ? number_of(&value) : std::nullopt;
      state_.parameter(key.name).hyper[key.moment] = number ? text_of(Value(*number)) : text_of(value);
      return;
    }
    if (key.kind == Key::Kind::step) {
      state_.parameter(key.name).step = number_of(&value);
      return;
    }
    if (key.kind == Key::Kind::moment) {
      state_.parameter(key.name).values[key.moment] = value;
      return;
    }
    if (value.is_none()) return;
    add_facts(state_, (key.kind == Key::Kind::fact ? "" : "training.") + key.name, value);
    if ((key.name == "training.step" || key.name == "training.train_state.step" || key.name == "training.global_step" ||
         key.name == "training.iteration") &&
        !state_.step)
      state_.step = integer_of(&value);
  }

  void bytes(const std::string& fqn) {
    const auto found = bytes_.find(fqn);
    if (found == bytes_.end()) return fault(".metadata", fqn + ": storage_data has no place of it");
    const auto value = read(found->second, fqn);
    if (!value) return;
    const Key key = this->key(fqn);
    if (key.kind == Key::Kind::hyper && key.moment == "params" && value->get<tensorfile::List>()) {
      for (const Value& each : value->get<tensorfile::List>()->values) groups_[key.name].push_back(key_text(each));
      return;
    }
    if (key.kind == Key::Kind::hyper && !key.name.empty() && parse_int(key.name)) {
      settings_[key.name][key.moment] = text_of(*value);
      return;
    }
    fact(key, *value);
  }

  std::map<std::string, std::vector<std::string>> groups_;
  std::map<std::string, std::map<std::string, std::string>> settings_;

  void files() {
    for (const auto& [group, names] : groups_) {
      for (const std::string& name : names) {
        Parameter& parameter = state_.parameter(name);
        parameter.group = static_cast<int>(parse_int(group).value_or(-1));
        for (const auto& [key, text] : settings_[group]) parameter.hyper[key] = text;
      }
    }
    for (const fs::path& entry : entries_of(folder_)) {
      const std::string name = entry.filename().string();
      std::error_code failure;
      if (!is_file(entry)) continue;
      if (opened_.contains(name) || name == ".metadata")
        state_.files.push_back({place_ + name, fs::file_size(entry, failure), rank_of(name)});
      else if (name.ends_with(".distcp"))
        fault(
            name,
            "is a file of parts that .metadata does not know: of another save, or of ranks that this one did not have");
      else if (place_.empty())
        state_.unread.push_back(name);
    }
    if (highest_ >= 0) state_.ranks = std::max<std::int64_t>(state_.ranks.value_or(0), highest_ + 1);
  }
};

}  // namespace

bool is_dcp(const std::string& folder) {
  if (is_file(folder + "/.metadata")) return true;
  return is_folder(folder) && std::ranges::any_of(entries_of(folder), [](const std::filesystem::path& entry) {
           return entry.extension() == ".distcp";
         });
}

Key key_of(const std::string& fqn, bool megatron) {
  std::string rest = fqn;
  const auto drop = [&](std::string_view prefix) {
    if (!rest.starts_with(prefix)) return false;
    rest.erase(0, prefix.size());
    return true;
  };
  static const RE2 kChained("^chained_\\d+\\.");  // one of several optimizers
  if (megatron) RE2::Replace(&rest, kChained, "");
  const bool optimizer = drop("optimizer.") || drop("optim.") || drop("optimizers.");
  if (optimizer || rest.starts_with("state.") || rest.starts_with("param_groups.")) {
    if (drop("state.")) {
      for (const char* const moment : {"exp_avg.", "exp_avg_sq.", "fp32_param.", "param.", "momentum_buffer."}) {
        if (!megatron || !optimizer || !drop(moment)) continue;
        const std::string kind(moment, std::char_traits<char>::length(moment) - 1);
        return kind == "param" || kind == "fp32_param" ? Key{Key::Kind::master, rest, ""}
                                                       : Key{Key::Kind::moment, rest, kind};
      }
      const std::size_t point = rest.rfind('.');
      if (point != std::string::npos) {
        const std::string last = rest.substr(point + 1);
        return {last == "step" ? Key::Kind::step : Key::Kind::moment, rest.substr(0, point), last};
      }
    } else if (drop("param_groups.")) {
      const std::size_t point = rest.rfind('.');
      if (point != std::string::npos) return {Key::Kind::hyper, rest.substr(0, point), rest.substr(point + 1)};
    }
    return {Key::Kind::fact, "optimizer." + rest, ""};
  }
  for (const char* const schedule : {"lr_scheduler.", "scheduler.", "lr_schedulers.", "opt_param_scheduler."}) {
    if (drop(schedule)) return {Key::Kind::fact, "schedule." + rest, ""};
  }
  for (const char* const scaler : {"scaler.", "grad_scaler."}) {
    if (drop(scaler)) return {Key::Kind::fact, "scaler." + rest, ""};
  }
  if (drop("random.")) return {Key::Kind::fact, "random." + rest, ""};
  static const RE2 kRandom("^(random|random_states?|rng|rng_state\\w*)([./]|$)");
  if (RE2::PartialMatch(rest, kRandom)) return {Key::Kind::fact, "random." + rest, ""};
  for (const char* const training :
       {"train_state", "dataloader", "trainer", "epoch", "global_step", "iteration", "args"}) {
    if (rest == training || rest.starts_with(std::string(training) + "."))
      return {Key::Kind::fact, "training." + rest, ""};
  }
  if (rest == "step") return {Key::Kind::fact, "training.step", ""};
  drop("model.");
  return {Key::Kind::weight, rest, ""};
}

void add_dcp(State& into, const std::string& folder, const std::string& place) {
  DcpReader(into, folder, place).read();
}

}  // namespace zs::checkpoints

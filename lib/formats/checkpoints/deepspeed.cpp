// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/deepspeed_reader.hpp"

#include <algorithm>
#include <filesystem>

#include <re2/re2.h>
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/flat.hpp"
#include "checkpoints/read.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints::deepspeed {

namespace fs = std::filesystem;

namespace {

/// The role of a file in the folder, by its name.
struct Role {
  enum class Kind { none, model, optimizer, layer, expert } kind = Kind::none;
  int dp = -1, mp = 0, layer = -1;
};

Role role_of(const std::string& name) {
  static const RE2 kWhole("mp_rank_(\\d+)_model_states\\.pt"),
      kOfRank("(?:bf16_|fp16_)?zero_pp_rank_(\\d+)_mp_rank_(\\d+)_optim_states\\.pt"),
      kPart("zero_pp_rank_(\\d+)_mp_rank_(\\d+)_model_states\\.pt"),
      kLayer("layer_(\\d+)-model(?:_\\d+-model)?_states\\.pt");
  Role role;
  if (RE2::FullMatch(name, kWhole, &role.mp) || RE2::FullMatch(name, kPart, &role.dp, &role.mp))
    role.kind = Role::Kind::model;
  else if (RE2::FullMatch(name, kOfRank, &role.dp, &role.mp))
    role.kind = Role::Kind::optimizer;
  else if (RE2::FullMatch(name, kLayer, &role.layer))
    role.kind = Role::Kind::layer;
  else if (name.find("expert_") != std::string::npos || name.starts_with("expp_rank_"))
    role.kind = Role::Kind::expert;
  return role;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string line_of(const std::string& path) { return trimmed(Input(path).read_all(4096)); }

}  // namespace

State Reader::read() {
  scan();
  if (models_.empty())
    throw Error(folder_, 0, "has no file *_model_states.pt: is this the folder of a checkpoint of DeepSpeed?");
  const Opened* const first = open_models();
  if (!first) throw Error(state_.faults.empty() ? folder_ + ": no model file can be read" : state_.faults.front());
  header(first->root, first->name);
  open_optimizers();
  for (const auto& [mp, opened] : model_files_) weights(opened.front());
  layers();
  if (universal())
    read_universal();
  else if (!experts_.empty())
    experts();
  else if (divided().optimizer_state)
    partitions();
  else
    unpartitioned(*first);
  for (const auto& [mp, opened] : model_files_) frozen(opened);
  finish();
  return std::move(state_);
}

void Reader::fault(const std::string& file, const std::string& what) { state_.fault(folder_ + "/" + file, what); }

stage::Division Reader::divided() const { return stage::divided_by(state_.stage.value_or(0)); }

bool Reader::universal() const { return fs::is_directory(folder_ + "/zero"); }

void Reader::scan() {
  for (const fs::path& entry : entries_of(folder_)) {
    const std::string name = entry.filename().string();
    std::error_code failure;
    if (!is_file(entry)) {
      if (name == "offloaded_tensors")
        fault(name, "holds tensors that were offloaded to NVMe, in DeepSpeed's swap files, which zs does not read");
      else if (name != "zero")
        state_.unread.push_back(name + "/");
      continue;
    }
    const Role role = role_of(name);
    if (role.kind == Role::Kind::none) {
      state_.unread.push_back(name);
      continue;
    }
    state_.files.push_back({name, fs::file_size(entry, failure), role.dp});
    auto* const place = role.kind == Role::Kind::model       ? &models_
                        : role.kind == Role::Kind::optimizer ? &optimizers_
                                                             : nullptr;
    if (place) {
      const auto [found, fresh] = (*place)[role.mp].emplace(role.dp, name);
      if (!fresh) {
        fault(name, "is a second file of rank " + std::to_string(role.dp) + ", like " + found->second +
                        ": one is of another save");
        found->second = std::min(found->second, name);
      }
    }
    if (role.kind == Role::Kind::layer) layers_[role.layer].push_back(name);
    if (role.kind == Role::Kind::expert) experts_.push_back(name);
  }
  std::ranges::sort(state_.files,
                    [](const File& a, const File& b) { return std::tie(a.rank, a.name) < std::tie(b.rank, b.name); });
}

bool Reader::open(const std::string& name, int dp, std::vector<Opened>& into) {
  return state_.attempt([&] {
    into.push_back({name, dp, tensorfile::read_torch_objects(folder_ + "/" + name)});
    note_content(state_, into.back().root);
  });
}

const Opened* Reader::open_models() {
  for (const auto& [mp, files] : models_) {
    for (const auto& [dp, name] : files) open(name, dp, model_files_[mp]);
  }
  std::erase_if(model_files_, [](const auto& each) { return each.second.empty(); });
  return model_files_.empty() ? nullptr : &model_files_.begin()->second.front();
}

void Reader::open_optimizers() {
  for (const auto& [mp, files] : optimizers_) {
    for (const auto& [dp, name] : files) {
      std::vector<Opened>& opened = optimizer_files_[mp];
      if (!open(name, dp, opened) || opened.back().root.find("optimizer_state_dict")) continue;
      fault(name, "holds no optimizer_state_dict: it is another file under this name");
      opened.pop_back();
    }
  }
  std::erase_if(optimizer_files_, [](const auto& each) { return each.second.empty(); });
  if (optimizer_files_.empty()) {
    const bool cut = models_.begin()->second.begin()->first >= 0;
    state_.stage = cut ? 3 : optimizers_.empty() ? 0 : 1;
  } else {
    const Opened& first = optimizer_files_.begin()->second.front();
    state_.stage = integer_of(within(&first.root, {"optimizer_state_dict", "zero_stage"}));
    if (!state_.stage) state_.stage = 1, state_.layout = "BF16_Optimizer";
  }
  if (state_.layout.empty()) state_.layout = "ZeRO-" + to_text(*state_.stage);
  if (universal())
    state_.layout = "universal",
    state_.stage = optimizers_.empty() && !divided().parameters ? std::nullopt : state_.stage;
  // Ranks: every file says how many there are.
  if (!state_.ranks || !divided().optimizer_state) return;
  for (const auto& [mp, files] : models_) {
    if (files.begin()->first >= 0) missing(files, "model_states");
    if (universal()) continue;
    const auto found = optimizers_.find(mp);
    missing(found == optimizers_.end() ? std::map<int, std::string>{} : found->second, "optim_states");
  }
  static const std::set<std::string> parts = {"base_optimizer_state", "single_partition_of_fp32_groups",
                                              "optimizer_state_dict", "fp32_flat_groups",
                                              "group_paddings",       "param_slice_mappings"};
  for (const auto& [mp, opened] : optimizer_files_) {
    const auto partitioned = [](const std::string& key) { return parts.contains(key); };
    repeated(opened, {}, partitioned);
    repeated(opened, {"optimizer_state_dict"}, partitioned);
    for (const Opened& file : opened) {
      const Value* count = within(&file.root, {"optimizer_state_dict", "partition_count"});
      if (!list_of(count).empty()) count = &list_of(count).front();
      if (const auto number = integer_of(count); number != state_.ranks)
        fault(file.name,
              "is one of " + (number ? to_text(*number) : "?") + " ranks, the model file of " + to_text(*state_.ranks));
      version(file);
    }
  }
}

void Reader::version(const Opened& file) {
  const Value* const text = file.root.find("ds_version");
  if (text && text->get<std::string>() && trimmed(*text->get<std::string>()) != state_.version)
    fault(file.name, "was written by DeepSpeed " + *text->get<std::string>() + ", other files by " + state_.version);
}

void Reader::missing(const std::map<int, std::string>& files, const char* kind) {
  for (int rank = 0; rank < static_cast<int>(*state_.ranks); ++rank) {
    if (!files.contains(rank))
      state_.fault(folder_, "the file of rank " + std::to_string(rank) + " is missing: *zero_pp_rank_" +
                                std::to_string(rank) + "_mp_rank_*_" + kind + ".pt");
  }
  for (const auto& [rank, name] : files) {
    if (rank >= *state_.ranks)
      fault(name,
            "is of rank " + std::to_string(rank) + ", but the checkpoint has " + to_text(*state_.ranks) + " ranks");
  }
}

void Reader::repeated(const std::vector<Opened>& files, std::initializer_list<std::string_view> part,
                      const std::function<bool(const std::string& key)>& skipped) {
  const auto texts_of = [&](const Opened& file) {
    Texts texts;
    for (const Item& item : items_of(within(&file.root, part))) {
      if (const std::string key = key_text(item.key); !skipped(key)) texts[key] = text_of(item.value);
    }
    return texts;
  };
  const Texts first = texts_of(files.front());
  for (const Opened& file : files) {
    for (const std::string& what : unlike(files.front().dp, first, file.dp, texts_of(file))) fault(file.name, what);
  }
}

std::vector<std::string> Reader::unlike(int rank, const Texts& texts, int other, const Texts& others) {
  Texts keys = texts;
  keys.insert(others.begin(), others.end());
  std::vector<std::string> found;
  for (const auto& [key, ignored] : keys) {
    const auto text = [&key = key](const Texts& side) { return side.contains(key) ? side.at(key) : "none"; };
    if (text(texts) != text(others))
      found.push_back("rank " + std::to_string(rank) + " has " + key + " " + text(texts) + ", rank " +
                      std::to_string(other) + " " + text(others));
  }
  return found;
}

void Reader::header(const Value& root, const std::string& name) {
  if (!root.get<Dict>()) throw Error(folder_ + "/" + name, 0, "holds no dict: is it a model file of DeepSpeed?");
  if (const Value* const text = root.find("ds_version"); text && text->get<std::string>())
    state_.version = trimmed(*text->get<std::string>());
  state_.step = integer_of(root.find("global_steps"));
  state_.skipped = integer_of(root.find("skipped_steps"));
  state_.ranks = integer_of(root.find("dp_world_size"));
  if (state_.ranks && (*state_.ranks < 1 || *state_.ranks > 1000000))
    throw Error(folder_ + "/" + name, 0, "has a dp_world_size of " + to_text(*state_.ranks));
  static constexpr std::string_view kKnown =
      "module buffer_names optimizer param_shapes frozen_param_shapes frozen_param_fragments shared_params "
      "lr_scheduler global_steps skipped_steps dp_world_size mp_world_size ds_config ds_version "
      "sparse_tensor_module_names checkpoint_parallel_dimensions";
  for (const auto& [mp, opened] : model_files_) {
    repeated(opened, {}, [](const std::string& key) {
      return !has_word(kKnown, key) || key == "module" || key == "frozen_param_fragments" || key == "shared_params";
    });
    for (const Opened& file : opened) {
      const Value* const module = file.root.find("module");
      if (!module || !module->get<Dict>()) fault(file.name, "has no entry module that is a dict of tensors");
      State said;
      for (const Item& item : items_of(&file.root)) {
        const std::string key = key_text(item.key);
        if (key == "lr_scheduler" && !item.value.is_none()) add_facts(said, "schedule", item.value);
        if (!has_word(kKnown, key) && !item.value.is_none()) add_facts(said, "training." + key, item.value);
      }
      repeat(file, said, opened.front());
      const auto step = integer_of(file.root.find("global_steps"));
      if (step != state_.step)
        fault(file.name, "is of step " + (step ? to_text(*step) : "?") + ", " + name + " of step " +
                             (state_.step ? to_text(*state_.step) : "?"));
      if (const auto ranks = integer_of(file.root.find("dp_world_size")); ranks != state_.ranks)
        fault(file.name, "is one of " + (ranks ? to_text(*ranks) : "?") + " ranks, " + name + " of " +
                             (state_.ranks ? to_text(*state_.ranks) : "?"));
      version(file);
    }
  }
}

void Reader::weights(const Opened& file) {
  std::map<View, std::string> seen;
  std::set<std::string> buffers;
  for (const Value& each : list_of(file.root.find("buffer_names"))) buffers.insert(key_text(each));
  for (const Item& item : items_of(file.root.find("shared_params"))) {
    const std::string alias = key_text(item.key), kept = key_text(item.value);
    state_.parameter(kept);
    shared_.insert(alias);
  }
  std::map<std::string, Shape> listed;  // the weights that ZeRO-3 cut
  for (const Value& group : list_of(file.root.find("param_shapes"))) {
    for (const Item& item : items_of(&group)) listed[key_text(item.key)] = shape_of(item.value);
  }
  std::map<std::string, Shape> frozen;
  for (const Item& item : items_of(file.root.find("frozen_param_shapes")))
    frozen[key_text(item.key)] = shape_of(item.value);
  for (const auto& [name, tensor] : tensors_of(file.root.find("module"))) {
    Parameter& parameter = state_.parameter(name);
    parameter.buffer = buffers.contains(name);
    for (const auto* const shapes : {&listed, &frozen}) {
      if (const auto said = shapes->find(name);
          said != shapes->end() && tensor.count() > 0 && said->second != tensor.shape)
        fault(file.name, "has " + name + " of the shape " + tensorfile::to_text(tensor.shape) + ", but lists " +
                             tensorfile::to_text(said->second));
    }
    const auto cut = listed.find(name);
    const bool empty = tensor.count() == 0 && !(cut != listed.end() && Whole{tensor.dtype, cut->second}.count() == 0);
    if (!empty || parameter.buffer) parameter.weight = whole(tensor, file.name);
    if (empty) continue;
    const auto [found, fresh] = seen.emplace(view_of(tensor), name);
    if (!fresh && tensor.count() > 0) parameter.tied = found->second;
  }
  for (const Item& item : items_of(file.root.find("shared_params")))
    state_.parameter(key_text(item.key)).tied = key_text(item.value);
  // ds_version 0.14 and earlier list aliases as pairs.
  for (const Value& pair : list_of(file.root.find("shared_params"))) {
    if (list_of(&pair).size() == 2) state_.parameter(key_text(list_of(&pair)[0])).tied = key_text(list_of(&pair)[1]);
  }
}

void Reader::layers() {
  for (const auto& [layer, files] : layers_) {
    if (files.size() > 1) {
      fault(files[1], "is a part of a layer cut by tensor parallelism, which zs does not join");
      continue;
    }
    std::vector<Opened> opened;
    if (!open(files[0], -1, opened)) continue;
    for (const auto& [name, tensor] : tensors_of(&opened[0].root))
      state_.parameter(std::to_string(layer) + "." + name).weight = whole(tensor, files[0]);
  }
}

void Reader::experts() {
  std::vector<Opened> states;
  for (const std::string& name : experts_) {
    std::vector<Opened> opened;
    const bool state = name.starts_with("expp_rank_");
    if (!open(name, -1, state ? states : opened) || state) continue;
    for (const auto& [key, tensor] : tensors_of(&opened[0].root)) state_.parameter(key).weight = whole(tensor, name);
  }
  if (divided().optimizer_state)
    partitions();
  else if (states.size() == 1)
    unpartitioned(states.front());
  else
    fault(experts_.front(), "is of experts on several ranks: their weights are read, the optimizer's state is not");
}

void Reader::finish() {
  for (Parameter& parameter : state_.parameters) {
    if (parameter.weight && !parameter.buffer && !parameter.master && parameter.moments.empty() &&
        parameter.tied.empty() && divided().optimizer_state && !universal())
      parameter.frozen = true;
    if (parameter.tied == parameter.name) parameter.tied.clear();
  }
  const auto frozen = std::ranges::find(state_.parameters, true, &Parameter::frozen);
  if (divided().optimizer_state && !divided().gradients && !universal() && frozen != state_.parameters.end())
    state_.notes.push_back("zero_to_fp32.py leaves out parameters that are not trained, as " + frozen->name +
                           ": ZeRO-1 lists none of them");
  if (divided().parameters && !universal())
    state_.notes.emplace_back("ZeRO-3 saves no 16-bit weights, so that masters cannot be checked against them");
}

}  // namespace zs::checkpoints::deepspeed

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;
using namespace deepspeed;

bool has_models(const std::string& folder) {
  return std::ranges::any_of(entries_of(folder), [](const fs::path& entry) {
    return role_of(entry.filename().string()).kind == Role::Kind::model;
  });
}

}  // namespace

std::string deepspeed_folder(const std::string& folder) {
  if (has_models(folder)) return folder;
  for (const char* const name : {"latest", "latest_universal"}) {
    const std::string path = folder + "/" + name;
    if (!is_file(path)) continue;
    const std::string tag = line_of(path);
    if (tag.empty() || tag == "." || tag == ".." || tag.find('/') != std::string::npos ||
        tag.find('\0') != std::string::npos)
      throw Error(path, 0, "does not name a folder next to it");
    const std::string inner = folder + "/" + tag;
    if (!is_folder(inner))
      throw Error(path, 0, "names " + tag + ", which is not there: the checkpoint was moved, or removed");
    if (!has_models(inner))
      throw Error(inner, 0,
                  "has no file *_model_states.pt, but " + std::string(name) + " names it: the checkpoint is not whole");
    return inner;
  }
  throw Error(folder, 0, "is no checkpoint of DeepSpeed");
}

bool is_deepspeed(const std::string& folder) {
  return has_models(folder) || is_file(folder + "/latest") || is_file(folder + "/latest_universal");
}

State read_deepspeed(const std::string& folder) { return Reader(folder, deepspeed_folder(folder)).read(); }

}  // namespace zs::checkpoints

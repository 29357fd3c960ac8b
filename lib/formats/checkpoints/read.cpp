// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/read.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/mapped.hpp"
#include "base/number.hpp"
#include "checkpoints/dcp.hpp"
#include "checkpoints/folders.hpp"
#include "checkpoints/sums.hpp"
#include "checkpoints/weights.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::checkpoints {
namespace {

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
    if (state.step || !name.starts_with(prefix)) continue;
    if (const auto step = parse_int(name.substr(std::string_view(prefix).size())); step && *step >= 0)
      state.step = step;
  }
  if (state.parameters.empty() && state.faults.empty()) throw Error(folder, 0, "holds no tensors");
  return state;
}

/// Where one trained parameter has a weight, each has; and a tied one has an owner.
void require_weights(State& state) {
  const auto trained = [](const Parameter& one) {
    return (one.master || !one.moments.empty()) && !one.name.starts_with('#');
  };
  const auto has = std::ranges::find_if(state.parameters, [&](const auto& one) { return trained(one) && one.weight; });
  for (const Parameter& one : state.parameters) {
    const Parameter* const owner = one.tied.empty() ? nullptr : state.find(one.tied);
    if (has != state.parameters.end() && trained(one) && !one.weight && one.tied.empty())
      state.fault(state.folder + "/" + has->weight->pieces.front().file,
                  "has no weight of " + one.name + ", which the optimizer has");
    if (owner && !owner->weight && !owner->master)
      state.fault(state.folder, one.name + ": is tied to " + one.tied + ", which is in no file");
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
  if (is_there(path + "/accelerator_states/state.json") || is_there(path + "/" + kSums)) return read_zs(path);
  if (is_dcp(path)) return read_dcp(path);
  if (is_deepspeed(path)) return read_deepspeed(path);
  const bool known = tensorfile::has_state_dict(path) || is_trainers(path) || is_there(path + "/accelerator_states");
  if (!known) {
    // One file of a trainer, or folders of checkpoints.
    std::vector<std::string> files;
    for (const fs::path& entry : entries_of(path)) {
      if (is_file(entry) && (entry.extension() == ".ckpt" || holds_tensors(entry.string())))
        files.push_back(entry.string());
    }
    if (files.size() == 1) return read_any(files[0]);
    if (const auto inner = checkpoints_in(path); !inner.empty() && files.empty()) {
      State state = read_any(inner.back().path);
      state.path = path;
      return state;
    }
    if (files.size() > 1) {
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

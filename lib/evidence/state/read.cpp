// SPDX-License-Identifier: Apache-2.0
#include "state/read.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/mapped.hpp"
#include "compare/content.hpp"
#include "state/dcp.hpp"
#include "state/deepspeed.hpp"
#include "state/weights.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::state {
namespace {

namespace fs = std::filesystem;

bool is_there(const std::string& path) {
  std::error_code failure;
  return fs::exists(path, failure);
}

State read_dcp(const std::string& folder) {
  State state;
  state.path = state.folder = folder;
  state.framework = "PyTorch distributed checkpoint";
  add_dcp(state, folder);
  state.layout = "sharded";
  const std::string name = fs::path(folder).filename().string();
  if (is_there(folder + "/metadata.json") && is_there(folder + "/common.pt")) state.framework = "Megatron-core";
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

/// The newest of the folders "checkpoint-40", "step-40", "checkpoint_40", "iter_0000040" in a folder that holds such
/// ones.
std::string newest(const std::string& folder) {
  std::pair<std::int64_t, std::string> best{-1, ""};
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    for (const std::string_view prefix : {"checkpoint-", "step-", "checkpoint_", "iter_", "epoch_"}) {
      if (!name.starts_with(prefix) || !entry.is_directory(failure)) continue;
      const std::string digits = name.substr(prefix.size());
      if (digits.empty() || digits.size() > 17 || digits.find_first_not_of("0123456789") != std::string::npos) continue;
      best = std::max(best, {std::stoll(digits), entry.path().string()});
    }
  }
  return best.second;
}

}  // namespace

bool is_foreign(const std::string& folder) {
  if (is_there(folder + "/accelerator_states")) return false;
  if (is_deepspeed(folder) || is_dcp(folder)) return true;
  for (const char* const name : {"optimizer.bin", "scheduler.bin", "pytorch_model_fsdp.bin", "pytorch_model_fsdp_0",
                                 "optimizer_0", "trainer_state.json"}) {
    if (is_there(folder + "/" + name)) return true;
  }
  return false;
}

State read(const std::string& named) {
  std::string path = named;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();  // as a shell completes it
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (!fs::exists(status))
    throw Error(path, 0, failure && failure.value() == ELOOP ? failure.message() : "there is no such file or folder");
  if (!fs::is_directory(status)) {
    if (!fs::is_regular_file(status)) throw Error(path, 0, "is no regular file");
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
  if (is_there(path + "/accelerator_states")) return read_zs(path);
  if (is_dcp(path)) return read_dcp(path);
  if (is_deepspeed(path)) return read_deepspeed(path);
  const bool known = tensorfile::has_state_dict(path) || is_foreign(path);
  if (!known) {
    // One file of a trainer, or folders of checkpoints.
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(path)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file(failure) && (name.ends_with(".ckpt") || compare::holds_tensors(entry.path().string())))
        files.push_back(entry.path().string());
    }
    if (files.size() == 1) return read(files[0]);
    if (const std::string inner = newest(path); !inner.empty() && files.empty()) {
      State state = read(inner);
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

}  // namespace zs::state

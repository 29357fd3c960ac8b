// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "state/dcp.hpp"
#include "state/fact.hpp"
#include "state/optimizer.hpp"
#include "state/read.hpp"
#include "state/safetensors.hpp"
#include "state/weights.hpp"
#include "tensorfile/state_dict.hpp"
#include "tensorfile/torch.hpp"

namespace zs::state {
namespace {

namespace fs = std::filesystem;
using tensorfile::Value;

class Folder {
 public:
  explicit Folder(const std::string& folder) : folder_(folder) {
    state_.path = state_.folder = folder;
    for (const auto& entry : fs::directory_iterator(folder)) names_.insert(entry.path().filename().string());
  }

  State read() {
    weights();
    optimizer();
    rest();
    name_it();
    return std::move(state_);
  }

 private:
  std::string folder_;
  State state_;
  std::set<std::string> names_, read_;

  bool has(const std::string& name) const { return names_.contains(name); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void took(const std::string& name, int rank = -1) {
    std::error_code failure;
    state_.files.push_back(
        {name, fs::is_regular_file(path(name), failure) ? fs::file_size(path(name), failure) : 0, rank});
    read_.insert(name);
  }

  std::optional<Value> open(const std::string& name, int rank = -1) {
    took(name, rank);
    try {
      Value value = tensorfile::read_torch_objects(path(name));
      note_objects(state_, value);
      return value;
    } catch (const Error& error) {
      state_.faults.emplace_back(error.what());
      return {};
    }
  }

  /// Folders of PyTorch's distributed checkpoints: pytorch_model_fsdp_0, optimizer_0.
  void weights() {
    for (const std::string& name : names_) {
      if (!is_dcp(path(name))) continue;
      add_dcp(state_, path(name), name + "/");
      read_.insert(name);
      state_.layout = "FSDP, sharded";
    }
    if (has("pytorch_model_fsdp.bin")) {
      if (const auto value = open("pytorch_model_fsdp.bin")) add_weights(state_, &*value, "pytorch_model_fsdp.bin");
      state_.layout = "FSDP, whole";
    } else if (tensorfile::has_state_dict(folder_)) {
      try {
        add_model(state_, folder_);
      } catch (const Error& error) {
        state_.faults.emplace_back(error.what());
      }
      for (const std::string& name : names_) {
        if (name.starts_with("model") || name.starts_with("pytorch_model")) {
          if (!read_.contains(name) && fs::is_regular_file(path(name))) took(name);
        }
      }
    }
    for (const std::string& name : names_) {
      int rank = -1, end = -1;
      if (std::sscanf(name.c_str(), "pytorch_model_fsdp_rank%d.bin%n", &rank, &end) == 1 &&
          end == static_cast<int>(name.size()))
        state_.faults.push_back(located(path(name), 0,
                                        "is a local state dict of FSDP, whose flat parameters do not say whose "
                                        "elements they are: save a sharded or a full one"));
    }
  }

  void optimizer() {
    if (has(kOptimizerFile)) {
      took(kOptimizerFile);
      try {
        add_safetensors(state_, path(kOptimizerFile));
      } catch (const Error& error) {
        state_.faults.emplace_back(error.what());
      }
    }
    for (const char* const name : {"optimizer.pt", "optimizer.bin"}) {
      if (!has(name)) continue;
      const auto value = open(name);
      if (!value) continue;
      if (is_optimizer(&*value))
        add_optimizer(state_, *value, name);
      else
        state_.faults.push_back(located(path(name), 0, "holds no optimizer's state dict"));
    }
  }

  void rest() {
    for (const char* const name : {"scheduler.pt", "scheduler.bin"}) {
      if (!has(name)) continue;
      if (const auto value = open(name)) add_facts(state_, "schedule", *value);
    }
    if (has("scaler.pt")) {
      if (const auto value = open("scaler.pt")) add_facts(state_, "scaler", *value);
    }
    std::int64_t ranks = 0;
    for (const std::string& name : names_) {
      int rank = -1, end = -1;
      const bool of_rank = (std::sscanf(name.c_str(), "random_states_%d.pkl%n", &rank, &end) == 1 ||
                            std::sscanf(name.c_str(), "rng_state_%d.pth%n", &rank, &end) == 1) &&
                           end == static_cast<int>(name.size());
      if (!of_rank && name != "rng_state.pth") continue;
      if (const auto value = open(name, std::max(rank, 0)))
        add_facts(state_, "random." + std::to_string(std::max(rank, 0)), *value);
      ranks = std::max<std::int64_t>(ranks, std::max(rank, 0) + 1);
    }
    for (std::int64_t rank = 0; rank < ranks && ranks > 1; ++rank) {
      if (!has("random_states_" + to_text(rank) + ".pkl") && !has("rng_state_" + to_text(rank) + ".pth"))
        state_.faults.push_back(located(folder_, 0, "the random states of rank " + to_text(rank) + " are missing"));
    }
    if (ranks > 0) state_.ranks = std::max(ranks, state_.ranks.value_or(0));
    if (has("trainer_state.json")) trainer();
    if (has("config.json")) took("config.json");
    for (const std::string& name : names_) {
      std::error_code failure;
      if (!read_.contains(name)) state_.unread.push_back(fs::is_directory(path(name), failure) ? name + "/" : name);
    }
  }

  void trainer() {
    took("trainer_state.json");
    const auto json = nlohmann::json::parse(Input(path("trainer_state.json")).read_all(), nullptr, false);
    if (!json.is_object()) {
      state_.faults.push_back(located(path("trainer_state.json"), 0, "is no JSON object"));
      return;
    }
    if (json.contains("global_step") && json["global_step"].is_number_integer())
      state_.step = json["global_step"].get<std::int64_t>();
    for (const char* const key : {"epoch", "max_steps", "train_batch_size", "num_train_epochs"}) {
      if (json.contains(key) && !json[key].is_null()) state_.facts[std::string("training.") + key] = json[key].dump();
    }
  }

  void name_it() {
    const bool accelerate = std::any_of(names_.begin(), names_.end(),
                                        [](const std::string& name) { return name.starts_with("random_states_"); });
    state_.framework = has("trainer_state.json") ? "Hugging Face Trainer" : accelerate ? "Accelerate" : "Hugging Face";
    if (state_.framework == "Hugging Face" && (state_.layout.starts_with("FSDP"))) state_.framework = "PyTorch";
    if (accelerate && state_.layout.empty() && state_.ranks && *state_.ranks > 1 &&
        state_.facts.contains("schedule.last_epoch"))
      state_.notes.emplace_back(
          "Accelerate advances the schedule by the number of ranks at every step: on another number it goes another "
          "way");
    if (state_.layout.empty()) state_.layout = "one file";
    if (!state_.step) {
      for (const Parameter& parameter : state_.parameters) {
        if (parameter.step) {
          state_.notes.push_back("the folder says no step; the optimizer has taken " + to_text(*parameter.step));
          break;
        }
      }
    }
    if (state_.parameters.empty() && state_.faults.empty())
      throw Error(folder_, 0, "holds no checkpoint that zs knows: no weights, no optimizer's state");
  }
};

}  // namespace

void add_model(State& into, const std::string& path) {
  const tensorfile::StateDict dict = tensorfile::open_state_dict(path);
  const std::string file = fs::path(dict.path()).filename().string();
  // Safetensors have their tensors by type and name.
  into.ordered = into.ordered && file.find("safetensors") == std::string::npos;
  std::map<std::tuple<const tensorfile::Storage*, std::int64_t, tensorfile::Shape>, std::string> seen;
  for (const auto& entry : dict.entries()) {
    Parameter& parameter = into.parameter(entry.name);
    parameter.weight = whole(entry.tensor, file);
    const auto [found, fresh] =
        seen.emplace(std::tuple{entry.tensor.storage.get(), entry.tensor.offset, entry.tensor.shape}, entry.name);
    if (!fresh && entry.tensor.count() > 0) parameter.tied = found->second;
  }
}

State read_folder(const std::string& folder) { return Folder(folder).read(); }

}  // namespace zs::state

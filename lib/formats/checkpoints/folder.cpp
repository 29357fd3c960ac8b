// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include <re2/re2.h>
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "checkpoints/dcp.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/optimizer.hpp"
#include "checkpoints/read.hpp"
#include "checkpoints/weights.hpp"
#include "tensorfile/state_dict.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;
using tensorfile::Value;

constexpr const char* kTrainer = "trainer_state.json";
constexpr const char* kStates = "accelerator_states";

class Folder {
 public:
  explicit Folder(const std::string& folder) : folder_(folder) {
    state_.path = state_.folder = folder;
    for (const fs::path& entry : entries_of(folder)) names_.insert(entry.filename().string());
    if (names_.erase(kStates) > 0) {  // Accelerate's save_state, in the folder of the weights
      states_ = std::string(kStates) + "/";
      for (const fs::path& entry : entries_of(folder + "/" + states_))
        names_.insert(states_ + entry.filename().string());
    }
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
  std::string states_;  // the folder of states, with a slash; "": this one

  bool has(const std::string& name) const { return names_.contains(name); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// Only Hugging Face's Trainer writes its schedule and its random states under these names.
  bool is_trainer() const {
    const auto is_random = [](const std::string& name) { return name.starts_with("rng_state"); };
    return has(kTrainer) || (has("scheduler.pt") && std::ranges::any_of(names_, is_random));
  }

  void took(const std::string& name, int rank = -1) {
    std::error_code failure;
    state_.files.push_back({name, is_file(path(name)) ? fs::file_size(path(name), failure) : 0, rank});
    read_.insert(name);
  }

  std::optional<Value> open(const std::string& name, int rank = -1) {
    took(name, rank);
    std::optional<Value> value;
    if (state_.attempt([&] { value = tensorfile::read_torch_objects(path(name)); })) note_content(state_, *value);
    return value;
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
    } else if (const std::string adapter = has("adapter_model.bin") ? "adapter_model.bin" : "adapter_model.safetensors";
               has(adapter)) {
      add_model(state_, path(adapter));
      took(adapter);
      state_.layout = "adapter";
    } else if (tensorfile::has_state_dict(folder_)) {
      state_.attempt([&] { add_model(state_, folder_); });
      for (const std::string& name : names_) {
        static const RE2 kPart("(?:pytorch_)?model(?:-\\d+-of-\\d+)?\\.(?:safetensors|bin)(?:\\.index\\.json)?");
        if (RE2::FullMatch(name, kPart) && !read_.contains(name) && fs::is_regular_file(path(name))) took(name);
        const bool again =
            !states_.empty() && (name == states_ + "model.safetensors" || name == states_ + "pytorch_model.bin");
        if (again) took(name);  // the same weights once more
      }
      for (int number = 1;; ++number) {  // the further models of Accelerate
        const std::string stem = "model_" + std::to_string(number);
        const std::string name = has(stem + ".safetensors") ? stem + ".safetensors" : "pytorch_" + stem + ".bin";
        if (!has(name)) break;
        state_.attempt([&] { add_model(state_, path(name), stem + "."); });
        took(name);
      }
    }
    for (const std::string& name : names_) {
      static const RE2 kLocal("pytorch_model_fsdp_rank\\d+\\.bin");
      if (RE2::FullMatch(name, kLocal))
        state_.fault(path(name),
                     "is a local state dict of FSDP, whose flat parameters do not say whose elements they "
                     "are: save a sharded or a full one");
    }
  }

  void optimizer() {
    if (const std::string file = states_ + kOptimizerFile; has(file)) {
      took(file);
      state_.attempt([&] { add_safetensors(state_, path(file)); });
    }
    std::vector<std::pair<std::string, Value>> dicts;
    for (const std::string& name : numbered("optimizer")) {
      const auto value = open(name);
      if (!value) continue;
      if (is_optimizer(&*value))
        dicts.emplace_back(name, *value);
      else
        state_.fault(path(name), "holds no optimizer's state dict");
    }
    if (!dicts.empty()) add_optimizer(state_, dicts);
  }

  /// The files of one or of several optimizers or schedules: Accelerate writes optimizer.bin, optimizer_1.bin, ...
  std::vector<std::string> numbered(const std::string& stem) const {
    std::vector<std::string> found;
    for (const char* const end : {".pt", ".bin"}) {
      if (has(states_ + stem + end)) found.push_back(states_ + stem + end);
    }
    for (int number = 1; has(states_ + stem + "_" + std::to_string(number) + ".bin"); ++number)
      found.push_back(states_ + stem + "_" + std::to_string(number) + ".bin");
    return found;
  }

  void rest() {
    add_documents(state_, folder_);
    for (const char* const name : {"gradients.pt", "gradient_norms.pt", "config.json"}) {
      if (has(name)) took(name);
    }
    std::vector<Value> schedules;
    for (const std::string& name : numbered("scheduler")) {
      if (const auto value = open(name)) schedules.push_back(*value);
    }
    add_schedules(state_, schedules);
    if (const std::string file = states_ + "scaler.pt"; has(file)) {
      if (const auto value = open(file)) add_facts(state_, "scaler", *value);
    }
    std::int64_t ranks = 0;
    for (const std::string& file : names_) {
      static const RE2 kRandom("random_states_(\\d+)\\.pkl|rng_state_(\\d+)\\.pth|rng_state\\.pth");
      const std::string name = file.starts_with(states_) ? file.substr(states_.size()) : file;
      std::string accelerate, trainer;
      if (!RE2::FullMatch(name, kRandom, &accelerate, &trainer)) continue;
      const int rank = static_cast<int>(parse_int(accelerate + trainer).value_or(0));
      if (const auto value = open(file, rank)) add_facts(state_, "random." + std::to_string(rank), *value);
      ranks = std::max<std::int64_t>(ranks, rank + 1);
    }
    for (std::int64_t rank = 0; rank < ranks && ranks > 1; ++rank) {
      if (!has(states_ + "random_states_" + to_text(rank) + ".pkl") && !has("rng_state_" + to_text(rank) + ".pth"))
        state_.fault(folder_, "the random states of rank " + to_text(rank) + " are missing");
    }
    if (ranks > 0) state_.ranks = std::max(ranks, state_.ranks.value_or(0));
    if (is_trainer() && !has(kTrainer))
      state_.fault(path(kTrainer), "is missing: the Trainer goes on from the step that it says");
    if (has(kTrainer)) trainer();
    for (const std::string& name : names_) {
      if (!read_.contains(name)) state_.unread.push_back(is_folder(path(name)) ? name + "/" : name);
    }
  }

  void trainer() {
    took(kTrainer);
    state_.attempt([&] {
      const nlohmann::json json = read_json(path(kTrainer));
      if (!json.is_object()) throw Error(path(kTrainer), 0, "is no JSON object");
      for (const auto& [key, value] : json.items()) {
        if (key == "global_step" && value.is_number_integer()) state_.step = value.get<std::int64_t>();
        // Left out: where it ran.
        if (value.is_null() || key == "global_step" || key.ends_with("process_zero") || key == "best_model_checkpoint")
          continue;
        if (value.is_structured())
          state_.facts["training." + key] = "sha256 " + sha256(value.dump());
        else
          add_json(state_.facts, "training." + key, value);
      }
    });
  }

  void name_it() {
    const bool accelerate = std::ranges::any_of(
        names_, [&](const std::string& name) { return name.starts_with(states_ + "random_states_"); });
    state_.framework = is_trainer() ? "Hugging Face Trainer" : accelerate ? "Accelerate" : "Hugging Face";
    if (state_.framework == "Hugging Face" && (state_.layout.starts_with("FSDP"))) state_.framework = "PyTorch";
    if (accelerate && state_.layout.empty() && state_.ranks && *state_.ranks > 1 &&
        state_.facts.contains("schedule.last_epoch"))
      state_.notes.emplace_back(
          "Accelerate advances the schedule by the number of ranks at every step: on another number it goes another "
          "way");
    if (state_.layout.empty()) state_.layout = "one file";
    const auto stepped = std::ranges::find_if(state_.parameters, [](const auto& one) { return one.step.has_value(); });
    if (!state_.step && stepped != state_.parameters.end())
      state_.notes.push_back("the folder says no step; the optimizer has taken " + to_text(*stepped->step));
    if (state_.parameters.empty() && state_.faults.empty())
      throw Error(folder_, 0, "holds no checkpoint that zs knows: no weights, no optimizer's state");
  }
};

}  // namespace

State read_folder(const std::string& folder) { return Folder(folder).read(); }

}  // namespace zs::checkpoints

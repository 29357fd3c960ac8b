// SPDX-License-Identifier: Apache-2.0
#include "pretrained/export.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "checkpoints/sums.hpp"
#include "config/config.hpp"
#include "pretrained/merge.hpp"
#include "registry/record.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::pretrained {
namespace {

namespace fs = std::filesystem;

constexpr std::array kTokenizer = {"tokenizer.json",
                                   "tokenizer.model",
                                   "tokenizer_config.json",
                                   "vocab.json",
                                   "merges.txt",
                                   "special_tokens_map.json",
                                   "added_tokens.json",
                                   "preprocessor_config.json",
                                   "generation_config.json"};

void put(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, failure);
  if (failure) throw Error(to.string(), 0, failure.message());
}

/// Copies the ids of the tokens at which a text begins and ends from the model's folder to config.json in `to`: zs does
/// not use these ids, and transformers would take defaults of another vocabulary.
void keep_token_ids(const std::string& from, const std::string& to) {
  using Json = nlohmann::ordered_json;
  const std::string known = from + "/config.json", path = to + "/config.json";
  if (!fs::exists(known) || !fs::exists(path)) return;
  const Json its = read_json<Json>(known);
  if (!its.is_object()) throw Error(known, 1, "expected an object of settings: repair the file, or remove it");
  Json own = json_of<Json>(read_regular(path, most_in_memory()).bytes, path);  // what zs wrote is no input
  for (const char* const key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    if (its.contains(key) && !own.contains(key)) own[key] = its[key];
  }
  write_file(path, own.dump(2) + "\n");
}

/// The folders of checkpoints that a run has, final_checkpoint last.
std::vector<std::string> checkpoints(const std::string& run) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run, none)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && (name == "final_checkpoint" || name.starts_with("checkpoint_"))) names.push_back(name);
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a[0] == 'f', std::pair(a.size(), a)) < std::pair(b[0] == 'f', std::pair(b.size(), b));
  });
  return names;
}

std::string chosen(const std::string& run, const std::string& asked) {
  const std::vector<std::string> all = checkpoints(run);
  if (all.empty()) throw Error(run, 0, "has no checkpoint: train with --save_steps, or with --save_final true");
  const std::string name = asked.empty() ? "final_checkpoint" : asked;
  for (const std::string& each : all) {
    if (each == name || each == "checkpoint_" + name || each == name + "_checkpoint") return run + "/" + each;
  }
  throw Error(run, 0, fmt::format("has no {}: name one of {} with --checkpoint", name, fmt::join(all, ", ")));
}

/// Throws where a file of the checkpoint is not what it was when it was written.
void check_sums(const std::string& checkpoint) {
  if (!fs::exists(checkpoint + "/" + checkpoints::kSums)) return;
  for (const auto& [file, digest] : checkpoints::read_sums(checkpoint)) {
    if (file == "pytorch_model.bin" || file == "model.safetensors" || file == "config.json" ||
        file == "adapter_config.json")
      checkpoints::require_sum(checkpoint, file, digest);
  }
}

/// The path of the run's tokenizer: the one that it was given, else the folder of its model; "" for none.
std::string tokenizer_of(const std::string& run) {
  if (!fs::exists(run + "/config.yaml")) return "";
  const config::Config config = config::Config::read(run + "/config.yaml");
  const std::string started = registry::value(registry::read_record(run), "directory");
  for (const char* const key : {"model.tokenizer", "model.name"}) {
    if (!config.has(key)) continue;
    const std::string path = config.text(key);
    // Relative to the folder where the run was started, or to this one.
    for (const fs::path& place : {fs::path(started) / path, fs::path(path)}) {
      if (fs::exists(place)) return place.string();
    }
  }
  return "";
}

}  // namespace

int copy_tokenizer(const std::string& from, const std::string& to) {
  std::error_code failure;
  int copied = 0;
  if (fs::is_regular_file(from)) {
    const fs::path file(from);
    // vocab.json and merges.txt belong together: either one names both.
    if (file.filename() == "vocab.json" || file.filename() == "merges.txt")
      return copy_tokenizer(file.parent_path().empty() ? "." : file.parent_path().string(), to);
    put(file, fs::path(to) / (file.extension() == ".model" ? "tokenizer.model" : "tokenizer.json"));
    return 1;
  }
  for (const char* const name : kTokenizer) {
    const fs::path file = fs::path(from) / name;
    if (!fs::exists(file) || fs::equivalent(from, to, failure)) continue;
    put(file, fs::path(to) / name);
    ++copied;
  }
  if (!fs::equivalent(from, to, failure)) keep_token_ids(from, to);
  return copied;
}

Exported export_run(const std::string& run, const std::string& checkpoint, const std::string& to) {
  Exported done{.checkpoint = chosen(run, checkpoint)};
  check_sums(done.checkpoint);
  const std::string configuration = done.checkpoint + "/config.json";
  if (!fs::exists(configuration))
    throw Error(configuration, 0, "is not there: which model the weights are of is not known");
  const tensorfile::StateDict weights = tensorfile::open_state_dict(done.checkpoint);
  std::error_code failure;
  fs::create_directories(to, failure);
  if (failure) throw Error(to, 0, failure.message());
  if (!fs::is_empty(to)) throw Error(to, 0, "is not empty: name a new folder");
  const std::string adapters = done.checkpoint + "/adapter_config.json";
  done.merged = fs::exists(adapters);
  tensorfile::NamedTensors tensors;
  if (done.merged)
    tensors = merged(weights, adapters);
  else
    for (const auto& entry : weights.entries()) tensors.emplace_back(entry.name, entry.tensor);
  tensorfile::write_safetensors(to + "/model.safetensors", tensors);
  write_file(to + "/config.json", Input(configuration).read_all());
  if (const std::string tokenizer = tokenizer_of(run); !tokenizer.empty())
    done.tokenizer = copy_tokenizer(tokenizer, to) > 0;
  done.tensors = static_cast<int>(tensors.size());
  return done;
}

}  // namespace zs::pretrained

// SPDX-License-Identifier: Apache-2.0
#include "pretrained/export.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/words.hpp"
#include "checkpoints/sums.hpp"
#include "config/config.hpp"
#include "registry/record.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::pretrained {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTokenizer =
    "tokenizer.json tokenizer.model tokenizer_config.json chat_template.jinja vocab.json merges.txt "
    "special_tokens_map.json "
    "added_tokens.json generation_config.json";

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
  const Json kept = read_json<Json>(known);
  if (!kept.is_object()) throw Error(known, 1, "expected an object of settings: repair the file, or remove it");
  Json written = json_of<Json>(read_regular(path, most_in_memory()).bytes, path);  // what zs wrote is no input
  for (const char* const key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    if (kept.contains(key) && !written.contains(key)) written[key] = kept[key];
  }
  write_file(path, written.dump(2) + "\n");
}

/// The folders of checkpoints that a run has, final_checkpoint last.
std::vector<std::string> checkpoints(const std::string& run) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(run)) {
    const std::string name = entry.filename().string();
    if (is_folder(entry) && (name == "final_checkpoint" || name.starts_with("checkpoint_"))) names.push_back(name);
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a[0] == 'f', std::pair(a.size(), a)) < std::pair(b[0] == 'f', std::pair(b.size(), b));
  });
  return names;
}

std::string chosen(const std::string& run, const std::string& asked) {
  const std::vector<std::string> saved = checkpoints(run);
  if (saved.empty()) throw Error(run, 0, "has no checkpoint: train with --save_steps, or with --save_final true");
  const std::string name = asked.empty() ? "final_checkpoint" : asked;
  for (const std::string& each : saved) {
    if (each == name || each == "checkpoint_" + name || each == name + "_checkpoint") return run + "/" + each;
  }
  throw Error(run, 0, fmt::format("has no {}: name one of {} with --checkpoint", name, fmt::join(saved, ", ")));
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

using tensorfile::Tensor;

constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight", kWeight = ".weight";

/// How adapters are added.
struct Rule {
  double scale;
  bool transposed;  ///< weights are [in, out]
};

Rule rule_of(const std::string& path) {
  const nlohmann::json json = read_json(path);
  const auto number = [&](const char* key) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number())
      throw Error(path, 0, std::string("has no number ") + key);
    return json[key].get<double>();
  };
  const auto truth = [&](const char* key) { return json.value(key, nlohmann::json()) == true; };
  const double rank = number("r"), alpha = number("lora_alpha");
  return {alpha / (truth("use_rslora") ? std::sqrt(rank) : rank), truth("fan_in_fan_out")};
}

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.count()));
  tensorfile::read_f32(tensor, values);
  return values;
}

/// weight + scale B A, of A [R, I] and B [O, R].
std::vector<float> sum(const Tensor& weight, const Tensor& a_RI, const Tensor& b_OR, Rule rule) {
  std::vector<float> numbers = floats(weight);
  const std::vector<float> a = floats(a_RI), b = floats(b_OR);
  const auto R = static_cast<std::size_t>(a_RI.shape[0]), I = static_cast<std::size_t>(a_RI.shape[1]),
             O = static_cast<std::size_t>(b_OR.shape[0]);
  std::vector<double> row(I);
  for (std::size_t o = 0; o < O; ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t i = 0; i < I; ++i) row[i] += static_cast<double>(b[o * R + r]) * a[r * I + i];
    }
    for (std::size_t i = 0; i < I; ++i) {
      float& value = numbers[rule.transposed ? i * O + o : o * I + i];
      value = static_cast<float>(value + rule.scale * row[i]);
    }
  }
  return numbers;
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
  for (const std::string_view name : words_of(kTokenizer)) {
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
  const std::string preprocessor = "/preprocessor_config.json";
  if (fs::exists(done.checkpoint + preprocessor)) put(done.checkpoint + preprocessor, to + preprocessor);
  if (const std::string tokenizer = tokenizer_of(run); !tokenizer.empty())
    done.tokenizer = copy_tokenizer(tokenizer, to) > 0;
  done.tensors = static_cast<int>(tensors.size());
  return done;
}

tensorfile::NamedTensors merged(const tensorfile::StateDict& weights, const std::string& configuration) {
  const Rule rule = rule_of(configuration);
  tensorfile::NamedTensors tensors;
  for (const auto& [name, tensor] : weights.entries()) {
    if (name.ends_with(kA) || name.ends_with(kB)) {
      const std::string adapted = name.substr(0, name.size() - kA.size()) + std::string(kWeight);
      if (!weights.find(adapted)) throw Error(weights.path(), 0, name + " adapts " + adapted + ", which is not there");
      continue;
    }
    const std::string module = name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : name;
    const Tensor *const a = weights.find(module + std::string(kA)), *const b = weights.find(module + std::string(kB));
    if (!a || !b) {
      tensors.emplace_back(name, tensor);
      continue;
    }
    const bool fits = tensor.shape.size() == 2 && a->shape.size() == 2 && b->shape.size() == 2 &&
                      a->shape[0] == b->shape[1] && a->shape[1] == tensor.shape[rule.transposed ? 0 : 1] &&
                      b->shape[0] == tensor.shape[rule.transposed ? 1 : 0];
    if (!fits) throw Error(weights.path(), 0, "the adapter of " + name + " has other shapes than it");
    const auto produce = [tensor, a, b, rule](const tensorfile::Sink& sink) {
      const std::vector<float> values = sum(tensor, *a, *b, rule);
      sink({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    };
    const auto size = static_cast<std::uint64_t>(tensor.count()) * sizeof(float);
    tensors.emplace_back(name, tensorfile::make_tensor(tensorfile::Dtype::f32, tensor.shape,
                                                       tensorfile::Storage::produce(size, produce)));
  }
  return tensors;
}

}  // namespace zs::pretrained

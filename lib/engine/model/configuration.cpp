// SPDX-License-Identifier: Apache-2.0
#include "model/configuration.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::model {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40;  // beyond it a size is a mistake

/// Sizes that every model has: null is neither a number nor a default for them.
constexpr const char* kSizes[] = {"n_layer",           "n_embd",     "n_head",
                                  "n_positions",       "vocab_size", "num_hidden_layers",
                                  "hidden_size",       "image_size", "num_attention_heads",
                                  "intermediate_size", "patch_size", "max_position_embeddings"};

/// Keys of every model that change no step of a training, or that zs takes from options (dropout, initial values,
/// dtype).
constexpr std::string_view kElsewhere =
    "architectures attention_dropout auto_map begin_suppress_tokens bos_token_id cache_implementation "
    "chunk_size_feed_forward decoder_start_token_id diversity_penalty dtype early_stopping embd_pdrop eos_token_id "
    "exponential_decay_length_penalty id2label initializer_range label2id length_penalty max_length min_length "
    "no_repeat_ngram_size encoder_no_repeat_ngram_size num_beam_groups num_beams num_return_sequences pad_token_id "
    "prefix problem_type repetition_penalty resid_pdrop return_dict sep_token_id suppress_tokens "
    "task_specific_params temperature tokenizer_class top_k top_p torch_dtype transformers.js_config "
    "transformers_version typical_p unsloth_fixed unsloth_version use_cache pruned_heads num_labels "
    "quantization_config";
}  // namespace

Configuration::Configuration(std::string where, const nlohmann::json& values)
    : where_(std::move(where)), values_(std::make_shared<const nlohmann::json>(values)) {
  if (!values_->is_object()) throw Error(where_, 0, "is not a JSON object");
  for (const char* const size : kSizes) {
    if (values_->contains(size) && !has(size)) refuse(size, "is null, expected a whole number");
  }
}

Configuration Configuration::read(const std::string& path) { return {path, read_json(path)}; }

bool Configuration::has(const char* key) const { return values_->contains(key) && !(*values_)[key].is_null(); }

void Configuration::refuse(const std::string& key, const std::string& why) const {
  throw Error(where_, 0, prefix_ + key + " " + why);
}

std::int64_t Configuration::integer(const char* key, std::int64_t fallback, std::int64_t lowest) const {
  if (!has(key)) return fallback;
  const nlohmann::json& value = (*values_)[key];
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMany)
                                               : value.is_number_integer();
  if (!fits || value.get<std::int64_t>() < lowest)
    refuse(key, "is " + value.dump() + ", expected a whole number from " + to_text(lowest) + " on");
  return value.get<std::int64_t>();
}

double Configuration::real(const char* key, double fallback, double lowest) const {
  if (!has(key)) return fallback;
  const nlohmann::json& value = (*values_)[key];
  if (!value.is_number() || !(value.get<double>() >= lowest) || !std::isfinite(value.get<double>()))
    refuse(key, "is " + value.dump() + ", expected a number of at least " + to_text(lowest));
  return value.get<double>();
}

bool Configuration::boolean(const char* key, bool fallback) const {
  if (!has(key)) return fallback;
  if (!(*values_)[key].is_boolean()) refuse(key, "is " + (*values_)[key].dump() + ", expected true or false");
  return (*values_)[key].get<bool>();
}

std::string Configuration::text(const char* key, const std::string& fallback) const {
  if (!has(key)) return fallback;
  if (!(*values_)[key].is_string()) refuse(key, "is " + (*values_)[key].dump() + ", expected a text");
  return (*values_)[key].get<std::string>();
}

Configuration Configuration::part(const char* key) const {
  if (!has(key)) return {where_, nlohmann::json::object()};
  if (!(*values_)[key].is_object()) refuse(key, "is " + (*values_)[key].dump() + ", expected an object");
  Configuration inner(where_, (*values_)[key]);
  inner.prefix_ = prefix_ + key + ".";
  return inner;
}

void Configuration::require(const char* key, std::initializer_list<nlohmann::json> values) const {
  if (!has(key) || std::find(values.begin(), values.end(), (*values_)[key]) != values.end()) return;
  refuse(key, "is " + (*values_)[key].dump() + ", zs knows " +
                  joined(values, " or ", [](const nlohmann::json& value) { return value.dump(); }));
}

void Configuration::require_known(std::string_view keys, const std::string& what) const {
  for (const auto& [key, value] : values_->items()) {
    if (value.is_null() || value == false || value == "" || key.starts_with('_') || has_word(keys, key)) continue;
    refuse(key, "is not known, of " + what + ": what it changes zs does not compute, leave it out if that is nothing");
  }
}

void Configuration::require_known_of_type(std::string_view keys, const std::string& type) const {
  require_known(std::string(keys) + " model_type " + std::string(kElsewhere), "a model of type " + type);
}

}  // namespace zs::model

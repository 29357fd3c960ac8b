// SPDX-License-Identifier: Apache-2.0
#include "setup/choices.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "base/number.hpp"
#include "data/corpus.hpp"
#include "data/images.hpp"
#include "image/listing.hpp"
#include "model/peft.hpp"
#include "model/vit.hpp"
#include "setup/preprocessor.hpp"
#include "tensorfile/state_dict.hpp"
#include "token/tokenize.hpp"
#include "token/tokenizer.hpp"

namespace zs::setup {
namespace {

using config::setting;

/// The path of the tokenizer: the requested one, else the one in the model's folder, if it has one; "" for bytes.
std::string tokenizer_of(const config::Reading& config, const std::string& folder) {
  const std::string asked = config[setting<"model.tokenizer">].value_or("");
  if (!asked.empty()) return asked == "bytes" ? "" : asked;
  return token::holds_tokenizer(folder) ? folder : "";
}

/// A classifier with the folder's number of labels has them: they number the classes of the data set. A new one has the
/// classes, in alphabetical order.
void choose_labels(Settings& s) {
  if (s.dataset == data::kGenerated) return;
  const std::string path = data::find(s.dataset);
  const std::vector<std::string> classes = image::classes_of(path);
  const std::int64_t count = std::ssize(classes);
  const bool folder = std::filesystem::is_directory(s.model.name);
  const std::vector<std::string> own = folder ? model::labels(s.model.name) : std::vector<std::string>();
  const std::int64_t labels = s.model.num_labels > 0 ? s.model.num_labels : folder ? std::ssize(own) : count;
  if (count < 2 || count > labels) return;
  if (labels != std::ssize(own)) {
    s.model.num_labels = labels;
    s.model.labels = model::unnamed(labels);
    std::ranges::copy(classes, s.model.labels.begin());
    return;
  }
  const auto numbers = [&](const std::string& name) { return std::ranges::count(own, name); };
  const auto unknown = std::ranges::find_if(classes, [&](const std::string& name) { return numbers(name) != 1; });
  const std::string config = s.model.name + "/config.json", few = to_text(count);
  if (unknown == classes.end()) {
    if (count < labels)
      s.notes.push_back(path + " has images of " + few + " of the " + to_text(labels) + " labels in " + config);
    return;
  }
  const bool none = std::ranges::all_of(classes, [&](const std::string& name) { return numbers(name) == 0; });
  if (none && count == labels) {
    s.model.labels = classes;
    if (own != model::unnamed(labels)) {
      s.notes.push_back("no class of " + path + " is a label in " + config +
                        ": classes are numbered in alphabetical order, '" + classes[0] + "' is 0, there '" + own[0] +
                        "'");
    }
    return;
  }
  throw Error(path, 0,
              "class '" + *unknown + "' is " +
                  (numbers(*unknown) > 1 ? "more than one label in " + config : "not a label in " + config) +
                  ": write the name of each class at its number in id2label" +
                  (count < labels ? ", or set --num_labels " + few + " for a new classifier" : ""));
}

/// A model of a known name gets the vocabulary of the requested tokenizer.
void choose_vocabulary(Settings& s) {
  if (s.model.vocab_size > 0 || s.tokenizer.empty() || std::filesystem::is_directory(s.model.name)) return;
  s.model.vocab_size = token::open_tokenizer(s.tokenizer)->size();
  s.notes.push_back("vocab_size is " + to_text(s.model.vocab_size) +
                    ": it is not set, and this is the number of the tokenizer's ids");
}

/// Chooses the parameters' initial values if no file has them all.
void choose_beginning(const config::Reading& config, Settings& s) {
  const bool folder = std::filesystem::is_directory(s.model.name);
  const bool weights = !s.checkpoint.empty() || (folder && tensorfile::has_state_dict(s.model.name));
  const bool new_head = s.model.num_labels > 0;
  if (weights && !new_head) return;
  s.initializes = config.given(setting<"initialization.init_type">);
  s.model.init_gaussian = config[setting<"initialization.init_type">] == "gaussian";
  s.model.init_mean = config[setting<"initialization.init_mean">];
  s.model.init_std = config[setting<"initialization.init_std">];
}

/// The trained parameters and the adapters.
void choose_adaptation(const config::Reading& config, Settings& s) {
  model::Adaptation& adaptation = s.model.adaptation;
  s.adapter = config[setting<"model.lora_adapter">].value_or("");
  if (!s.adapter.empty()) {
    const config::Entry* const rank = config.entry(setting<"model.lora_rank">);
    if (config[setting<"model.lora_rank">] > 0)
      throw Error(rank->origin + ": the rank of adapters is asked for, and " + s.adapter + "/" + model::kAdapterConfig +
                  " says it: leave --lora_rank out");
    adaptation = model::read_peft(s.adapter);
  } else if (adaptation.rank = static_cast<int>(config[setting<"model.lora_rank">]); adaptation.adapts()) {
    adaptation.alpha = config[setting<"model.lora_alpha">];
    adaptation.targets = config[setting<"model.lora_targets">];
    if (adaptation.targets.empty()) adaptation.targets = {"all-linear"};
    adaptation.rank_stabilized = config[setting<"model.use_rslora">];
    adaptation.modules = config[setting<"model.modules_to_save">];
  }
  adaptation.frozen = config[setting<"training.freeze">];
}

/// Sets the values that the user asked for.
template <config::Key key>
void choose_channels(const config::Reading& config, config::Setting<key> which, std::array<double, 3>& values) {
  if (!config.given(which)) return;
  const std::string_view name = config::Setting<key>::row.key;
  const config::Entry* const entry = config.entry(which);
  std::vector<std::optional<double>> given;
  for (const std::string& text : config[which]) given.push_back(parse_real(text));
  const auto made = of_channels(given, name == "data.image_std");
  if (!made) throw Error(entry->origin + ": " + std::string(name) + " is " + entry->value + kOfChannels);
  values = *made;
}

/// How images become samples of that size.
void choose_transform(const config::Reading& config, Settings& s, std::int64_t size) {
  s.transform = read_preprocessor(s.model.name, size, config.given(setting<"model.image_size">));
  s.transform.augmentation = config[setting<"data.use_augmentation">];
  choose_channels(config, setting<"data.image_mean">, s.transform.mean);
  choose_channels(config, setting<"data.image_std">, s.transform.std);
  s.skip_bad_images = config[setting<"data.skip_bad_images">];
}

}  // namespace

void choose_inputs(const config::Reading& config, Settings& s) {
  s.model.name = config[setting<"model.name">];
  s.model.num_layers = config[setting<"model.num_layers">];
  s.model.dropout = config[setting<"model.dropout">];
  s.model.fused = config[setting<"zero.compile">];
  if (model::has_experts(s.model.name))
    s.model.router_aux_loss_coef = config[setting<"model.router_aux_loss_coef">].value_or(-1);
  choose_adaptation(config, s);
  s.model.seq_length = config[setting<"model.context_length">].value_or(0);
  const bool images = model::takes_images(s.model.name);
  if (images && s.model.adaptation.adapts())
    throw Error("model " + s.model.name + " takes images, and adapters are for models of text: leave " +
                (s.adapter.empty() ? "--lora_rank" : "--lora_adapter") + " out; --freeze trains a part of it");
  s.dataset = config[setting<"data.dataset_path">].value_or(images ? data::kGenerated : data::kDefaultDataset);
  if (images) {
    if (!config.entry(setting<"data.dataset_path">))
      s.notes.push_back("the images are generated, of patterns with noise: no data set is named");
    s.model.image_size = config[setting<"model.image_size">].value_or(0);
    s.model.num_labels = config[setting<"model.num_labels">].value_or(0);
    choose_beginning(config, s);
    choose_labels(s);
    s.num_workers =
        static_cast<int>(config[setting<"data.num_workers">].value_or(std::max(1, token::processors() / s.ranks)));
  } else {
    s.tokenizer = tokenizer_of(config, s.model.name);
    s.model.vocab_size = config[setting<"model.vocab_size">].value_or(0);
    choose_beginning(config, s);
    choose_vocabulary(s);
    s.text_key = config[setting<"data.text_key">].value_or("");
    if (const auto loss_on = config[setting<"data.loss_on">])
      s.loss_on = *loss_on == "all" ? chat::LossOn::all : chat::LossOn::assistant;
    for (const data::Packing packing : {data::Packing::none, data::Packing::masked}) {
      if (config[setting<"data.packing">] == data::name(packing)) s.packing = packing;
    }
    if (s.packing != data::Packing::whole) {
      const std::string too_long = config[setting<"data.too_long">].value_or("split");
      s.too_long = too_long == "cut"    ? data::TooLong::cut
                   : too_long == "drop" ? data::TooLong::drop
                                        : data::TooLong::split;
    }
  }
  s.held_out = {config[setting<"data.validation_fraction">], config[setting<"data.test_fraction">]};
  s.dataset_percentage = config[setting<"data.dataset_percentage">];
  s.dataset_size = config[setting<"data.dataset_size">].value_or(0);
  const model::Model model = model::make(s.model);
  if (images) choose_transform(config, s, model.image_size);
  if (model.published && s.checkpoint.empty() && !config.given(setting<"initialization.init_type">)) {
    s.notes.push_back(model.name +
                      " begins from random values: its published weights come with a folder that save_pretrained "
                      "wrote, --model_name FOLDER");
  }
  if (s.model.seq_length == model.seq_length) return;
  s.model.seq_length = model.seq_length;
  if (images) return;
  s.notes.push_back("seq_length is " + to_text(model.seq_length) + ": it is not set, and " + model.name + " has " +
                    to_text(model.positions) + " positions");
}

}  // namespace zs::setup

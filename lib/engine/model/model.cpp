// SPDX-License-Identifier: Apache-2.0
#include "model/model.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "model/decoder.hpp"
#include "model/gpt2.hpp"
#include "model/models.hpp"
#include "model/vit.hpp"

namespace zs::model {
namespace {

namespace fs = std::filesystem;

// The largest --num_layers: each layer is made before it is known whether all fit into memory.
constexpr std::int64_t kMostLayers = 100000;

const Family& family_of(const Configuration& config) {
  const std::string type = config.text("model_type", "");
  for (const Family* const family : families()) {
    if (family->name == type) return *family;
  }
  const std::string list = joined(families(), ", ", &Family::name);
  config.refuse("model_type", type.empty() ? "is missing (zs knows " + list + ")"
                                           : "'" + type + "' is not known (zs knows " + list + ")");
}

/// A model with a known name.
struct Known {
  std::string family, name, owner;  // "owner/name" is accepted too, as on Hugging Face's hub
  nlohmann::json config;            // its config.json, where it differs from the defaults
};

const std::vector<Known>& known() {
  static const std::vector<Known> models = [] {
    std::vector<Known> list;
    for (const nlohmann::json& row : nlohmann::json::parse(kModels))
      list.push_back({row["family"], row["name"], row["owner"], row["config"]});
    return list;
  }();
  return models;
}

/// A model's configuration, and the folder that it is in.
struct Source {
  Configuration config;
  std::string folder;
  bool published = false;
};

Source find(const std::string& name) {
  if (is_folder(name)) {
    std::string folder = name;
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    return {Configuration::read(folder + "/config.json"), folder};
  }
  for (const Known& model : known()) {
    if (name != model.name && name != model.owner + "/" + model.name) continue;
    nlohmann::json values = model.config;
    values["model_type"] = model.family;
    return {{"model " + model.name, std::move(values)}, "", model.owner != "zs"};
  }
  throw Error("model '" + name + "' is not a folder, and not known" + did_you_mean(name, names()) + " (there are " +
              joined(names()) + ")");
}

}  // namespace

const std::vector<const Family*>& families() {
  static const std::vector<const Family*> families = [] {
    std::vector<const Family*> list = {&gpt2()};
    for (const Family& each : decoders()) list.push_back(&each);
    list.push_back(&vit());
    return list;
  }();
  return families;
}

bool takes_images(const std::string& name) {
  const Source source = find(name);
  return family_of(source.config).size(source.config, {}).vocabulary == 0;
}

bool has_experts(const std::string& name) {
  const Source source = find(name);
  return family_of(source.config).size(source.config, {}).experts > 0;
}

std::vector<std::string> labels(const std::string& name) { return labels_of(find(name).config); }

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Known& model : known()) names.push_back(model.name);
  return names;
}

Model make(const Settings& settings) {
  const auto [config, folder, published] = find(settings.name);
  const Family& family = family_of(config);
  if (config.has("quantization_config")) {
    const Configuration how = config.part("quantization_config");
    const std::string method = how.text("quant_method", "");
    const bool nf4 = method == "bitsandbytes" && how.text("bnb_4bit_quant_type", "") == "nf4";
    if (!nf4)
      config.refuse(
          "quantization_config",
          method == "mxfp4"
              ? "is mxfp4: zs reads weights of 16 bits and more, give it the model as transformers' "
                "Mxfp4Config(dequantize=True) loads and saves it"
              : "is set: zs reads weights of 16 bits and more, and bitsandbytes' NF4: give it the model as it was");
  }
  const Size size = family.size(config, settings);
  if (settings.num_layers > size.layers && !folder.empty()) {
    throw Error(config.where(), 0,
                "the model has " + to_text(size.layers) + " layers: --num_layers " + to_text(settings.num_layers) +
                    " can only leave some out");
  }
  if (size.layers > kMostLayers)
    throw Error(config.where(), 0, "has " + to_text(size.layers) + " layers, expected 1 to " + to_text(kMostLayers));
  const bool images = size.vocabulary == 0;
  if (images && settings.seq_length != 0 && settings.seq_length != size.positions) {
    throw Error("model " + settings.name + " takes images, of " + to_text(size.positions) +
                " tokens by its image size and patch size: leave seq_length " + to_text(settings.seq_length) + " out");
  }
  if (images && settings.vocab_size > 0)
    throw Error("model " + settings.name + " takes images and has no vocabulary: leave model.vocab_size out");
  if (!images && (settings.image_size > 0 || settings.num_labels > 0)) {
    throw Error("model " + settings.name + " takes text: leave " +
                (settings.image_size > 0 ? "--image_size" : "--num_labels") + " out");
  }
  if (settings.seq_length < 0 || settings.seq_length > size.positions) {
    throw Error("model " + settings.name + " takes sequences of 1 to " + to_text(size.positions) + " tokens, not " +
                to_text(settings.seq_length));
  }
  if (settings.vocab_size > 0 && settings.vocab_size != size.vocabulary && !folder.empty()) {
    throw Error(config.where(), 0,
                "vocab_size is " + to_text(size.vocabulary) + ", model.vocab_size " + to_text(settings.vocab_size) +
                    ": leave model.vocab_size out");
  }
  Model model;
  model.name = folder.empty() ? config.where().substr(std::string_view("model ").size()) : folder;
  model.family = family.name;
  model.folder = folder;
  model.published = published;
  model.num_layers = settings.num_layers > 0 ? settings.num_layers : size.layers;
  model.width = size.width;
  model.num_heads = model.num_key_value_heads = size.heads;
  model.positions = size.positions;
  model.seq_length = settings.seq_length > 0 ? settings.seq_length
                     : images                ? size.positions
                                             : std::min(size.positions, kUsualLength);
  model.vocab_size = settings.vocab_size > 0 ? settings.vocab_size : size.vocabulary;
  family.build(model, config, settings, std::max(size.layers, model.num_layers));
  require_matches(model.units, settings.adaptation);
  return model;
}

void require_same(const Model& model, const std::string& folder) {
  const std::string path = folder + "/config.json";
  if (!fs::exists(path)) return;
  const Configuration theirs = Configuration::read(path), ours("config.json", nlohmann::json::parse(model.config_json));
  const auto differ = [&](const char* key, const nlohmann::json& then, const nlohmann::json& now) {
    if (then == now) return;
    throw Error(path, 0,
                std::string(key) + " is " + then.dump() + ", of the model " + now.dump() +
                    ": it is a checkpoint of another model");
  };
  if (theirs.has("model_type")) differ("model_type", theirs.values()["model_type"], model.family);
  const Family& family = family_of(ours);
  const nlohmann::json now = family.meaning(ours), then = family.meaning(theirs);
  for (const auto& [key, value] : then.items()) {
    if (now.contains(key)) differ(key.c_str(), value, now[key]);
  }
}

}  // namespace zs::model

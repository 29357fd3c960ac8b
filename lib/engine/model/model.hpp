// SPDX-License-Identifier: Apache-2.0
// The models, by name or by the folder that Hugging Face's save_pretrained writes. A model is a list of units; GPT-2,
// decoders and ViT are a file pair each.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/adaptation.hpp"
#include "model/configuration.hpp"
#include "unit/unit.hpp"

namespace zs::model {

/// What a model is made from; 0 and negative values mean "as the name says".
struct Settings {
  std::string name = "tiny";  ///< one of names(), or a folder with a config.json
  std::int64_t num_layers = 0;
  std::int64_t vocab_size = 0;
  std::int64_t seq_length = 0;  ///< tokens in a sample; at most the model's positions
  std::int64_t image_size = 0;  ///< pixels along a side of a sample
  std::int64_t num_labels = 0;
  std::vector<std::string> labels{};  ///< their names, for config.json; none, or num_labels
  double dropout = 0;                 ///< of what the family drops, in place of config.json's
  double init_mean = 0, init_std = 0.02;
  bool init_gaussian = false;        ///< every parameter begins as N(init_mean, init_std), biases and norms too
  bool fused = false;                ///< fused kernels instead of LibTorch's operations
  at::DeviceType device = at::kCPU;  ///< where forward will run
  Adaptation adaptation{};           ///< which parameters are trained, and what is added to them
};

struct Model {
  std::string name, family;
  std::string folder;      ///< where config.json and weights are, or "" for a known name
  bool published = false;  ///< a known name whose weights others have published, which are not here
  unit::Units units;
  std::int64_t vocab_size = 0, positions = 0;
  std::int64_t seq_length = 0;  ///< tokens in a sample: as asked for, else the positions, but no more than kUsualLength
  std::int64_t num_layers = 0, width = 0, num_heads = 0;
  std::int64_t image_size = 0, num_labels = 0;  ///< of a model that classifies images; else 0
  bool takes_images() const { return image_size > 0; }
  double flops_per_token = 0;  ///< forward and backward, matrix products alone
  std::string config_json;     ///< as Hugging Face's class of the family writes it
};

/// Tokens in a sample where nothing is asked for and the model has more positions: what a laptop trains in seconds.
inline constexpr std::int64_t kUsualLength = 512;

/// What a config.json says of a model's size, each under the key that its family has for it; and of its settings.
struct Size {
  std::int64_t layers, width, heads, positions;
  std::int64_t vocabulary;  ///< 0 where samples are images: all of them have `positions` tokens
};

/// A model that is known by its name.
struct Known {
  std::string name, owner;  ///< "owner/name" is known too, as on Hugging Face's hub
  const char* config;       ///< what its config.json has beside the defaults
};

/// Models of one kind. How Hugging Face names their tensors stands with their units: unit::Parameter, unit::Extra.
struct Family {
  std::string name;  ///< config.json's model_type
  std::vector<Known> models;
  Size (*size)(const Configuration&, const Settings&);
  /// Fills in units, flops_per_token and config_json of a model whose other members are set; `total` is the number of
  /// layers before any was left out. Throws zs::Error at what the family does not know.
  void (*build)(Model&, const Configuration&, const Settings&, std::int64_t total);
  /// What of a config.json decides what is computed, key by key, in one form however old the file is.
  nlohmann::json (*meaning)(const Configuration&);
};
/// All families; a new one is a description in decoders.cpp, or a line in model.cpp.
const std::vector<const Family*>& families();

/// Whether the samples of a model are images. Throws zs::Error as make() does where there is no such model.
bool takes_images(const std::string& name);

/// Names of the models that make() knows.
std::vector<std::string> names();

/// Throws zs::Error at an unknown name (naming the nearest), at a config.json that zs does not understand whole, and at
/// settings that do not suit.
Model make(const Settings& settings);

/// Compares a folder's config.json, if it has one, with the model: every key that decides what is computed and that
/// both have must be the same. Throws zs::Error, naming the key, where one is not.
void require_same(const Model& model, const std::string& folder);

}  // namespace zs::model

// SPDX-License-Identifier: Apache-2.0
// The models, by name or by a folder of Hugging Face's save_pretrained. A model is a list of units; GPT-2, decoders and
// ViT have separate files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/adaptation.hpp"
#include "model/configuration.hpp"
#include "unit/unit.hpp"

namespace zs::model {

/// The settings of a model; 0 and negative values mean the default of the name.
struct Settings {
  std::string name = "tiny";  ///< one of names(), or a folder with a config.json
  std::int64_t num_layers = 0;
  std::int64_t vocab_size = 0;
  std::int64_t seq_length = 0;  ///< tokens in a sample; at most the model's positions
  std::int64_t image_size = 0;  ///< side length of a sample in pixels
  std::int64_t num_labels = 0;
  std::vector<std::string> labels{};  ///< their names, by number; none: as config.json says
  double dropout = 0;                 ///< where the family applies dropout, instead of config.json's
  double init_mean = 0, init_std = 0.02;
  bool init_gaussian = false;        ///< initialize every parameter with N(init_mean, init_std), also biases and norms
  bool fused = false;                ///< fused kernels instead of LibTorch's operations
  double router_aux_loss_coef = -1;  ///< factor of the experts' auxiliary loss; negative: as config.json says
  bool experts_one_by_one = false;   ///< as in kernel::ExpertsLayer
  at::DeviceType device = at::kCPU;  ///< where forward will run
  Adaptation adaptation{};           ///< which parameters are trained, and which adapters are added
};

struct Model {
  std::string name, family;
  std::string folder;      ///< folder of config.json and weights, or "" for a known name
  bool published = false;  ///< a known name with published weights, which are not here
  unit::Units units;
  std::int64_t vocab_size = 0, positions = 0;
  std::int64_t seq_length = 0;  ///< tokens in a sample: as requested, else the positions, but at most kUsualLength
  std::int64_t num_layers = 0, width = 0, num_heads = 0;
  std::int64_t num_key_value_heads = 0;         ///< that the heads share
  std::int64_t image_size = 0, num_labels = 0;  ///< for a model that classifies images; else 0
  std::vector<std::string> labels{};            ///< their names, by number
  bool takes_images() const { return image_size > 0; }
  double flops_per_token = 0;  ///< forward and backward, only matrix products
  std::string config_json;     ///< in the form of Hugging Face's class of the family
};

/// The default number of tokens in a sample if the model has more positions: a laptop trains it in seconds.
inline constexpr std::int64_t kUsualLength = 512;

/// The sizes in a config.json, each under its family's key; and its settings.
struct Size {
  std::int64_t layers, width, heads, positions;
  std::int64_t vocabulary;   ///< 0 for images: all samples have `positions` tokens
  std::int64_t experts = 0;  ///< of a layer
};

/// Models of one kind. Hugging Face's names of their tensors are in unit::Parameter and unit::Extra.
struct Family {
  std::string name;  ///< config.json's model_type
  Size (*size)(const Configuration&, const Settings&);
  /// Sets units, flops_per_token and config_json of a model whose other members are set; `total` is the number of
  /// layers before any was left out. Throws zs::Error at anything that the family does not support.
  void (*build)(Model&, const Configuration&, const Settings&, std::int64_t total);
  /// The keys of a config.json that affect the computation, in one form for all versions of the file.
  nlohmann::json (*meaning)(const Configuration&);
};
/// All families; a new one is a description in decoders.cpp, or a line in model.cpp. A model with a known name is a
/// line of models.json.
const std::vector<const Family*>& families();

/// Whether a model's samples are images. Throws zs::Error as make() does if there is no such model.
bool takes_images(const std::string& name);

/// Whether layers of a model have experts; throws in the same way.
bool has_experts(const std::string& name);

/// Names of the labels of a model that takes images, by number; LABEL_N where its config.json has none. Throws in the
/// same way.
std::vector<std::string> labels(const std::string& name);

/// Names of the models that make() accepts.
std::vector<std::string> names();

/// Throws zs::Error at an unknown name (with the nearest), at unsupported keys of a config.json, and at settings that
/// do not match.
Model make(const Settings& settings);

/// Compares a folder's config.json, if it has one, with the model: every key that affects the computation and that both
/// have must be equal. Throws zs::Error, naming the key, if one differs.
void require_same(const Model& model, const std::string& folder);

}  // namespace zs::model

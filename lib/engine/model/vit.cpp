// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, G patches along a side, T = G*G + 1 tokens, P pixels along a patch, C width, H heads, I inner
// width, L labels.
#include "model/vit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "kernel/kernels.hpp"
#include "model/parameters.hpp"
#include "unit/random.hpp"

namespace zs::model {
namespace {

using at::Tensor;
using unit::ForwardContext;
using unit::Parameter;

constexpr const char* kPrefix = "vit.";
constexpr std::int64_t kChannels = 3;

struct Shared {
  std::int64_t C, H, I, L, P;
  std::int64_t grid, own_grid;  // patches along a side of a sample, and of the image size of the positions
  bool qkv_bias;
  double epsilon, dropout;
  const kernel::Kernels* kernels;
};

class Embeddings final : public unit::Unit {
 public:
  Embeddings(const Shared& shared, const Settings& settings)
      : Unit("embeddings", begun(parameters(shared, settings), kPrefix, settings), -1,
             // These are in models that were trained to fill in patches, or to describe an image by its first token.
             {{.suffix = "embeddings.mask_token"}, {.suffix = "pooler.dense.weight"}, {.suffix = "pooler.dense.bias"}}),
        shared_(shared) {
    if (shared.grid != shared.own_grid)
      resized_ = bicubic(shared.own_grid, shared.grid).to(at::TensorOptions(settings.device).dtype(at::kFloat));
  }

  Tensor forward(const Tensor&, std::span<const Tensor> owned, std::span<const Tensor>,
                 const ForwardContext& context) const override {
    const std::int64_t B = context.batch.inputs.size(0), G = shared_.grid, P = shared_.P, C = shared_.C;
    const Tensor &class_11C = owned[0], &positions_1TC = owned[1], &weight_C3PP = owned[2], &bias_C = owned[3];
    const Tensor patches_BNE = context.batch.inputs.to(weight_C3PP.scalar_type())
                                   .view({B, kChannels, G, P, G, P})
                                   .permute({0, 2, 4, 1, 3, 5})
                                   .reshape({B, G * G, kChannels * P * P});
    const Tensor embedded_BNC = shared_.kernels->project(patches_BNE, weight_C3PP.view({C, -1}), bias_C);
    const Tensor x_BTC = at::cat({class_11C.expand({B, 1, C}), embedded_BNC}, 1) + positions(positions_1TC);
    return unit::dropout(x_BTC, context.training ? shared_.dropout : 0, unit::mix(context.stream, name()));
  }

 private:
  Shared shared_;
  Tensor resized_;

  /// The positions for the grid of the samples.
  Tensor positions(const Tensor& positions_1TC) const {
    if (!resized_.defined()) return positions_1TC;
    const Tensor of_grid_NC = positions_1TC.select(0, 0).narrow(0, 1, shared_.own_grid * shared_.own_grid);
    return at::cat(
        {positions_1TC.narrow(1, 0, 1), at::mm(resized_.to(of_grid_NC.scalar_type()), of_grid_NC).unsqueeze(0)}, 1);
  }

  static std::vector<Parameter> parameters(const Shared& s, const Settings& settings) {
    const std::string prefix = "vit.embeddings.";
    return {matrix(prefix + "cls_token", {1, 1, s.C}, settings, "hidden_size"),
            matrix(prefix + "position_embeddings", {1, s.own_grid * s.own_grid + 1, s.C}, settings,
                   "image_size, patch_size, hidden_size"),
            matrix(prefix + "patch_embeddings.projection.weight", {s.C, kChannels, s.P, s.P}, settings,
                   "hidden_size, num_channels, patch_size"),
            bias(prefix + "patch_embeddings.projection.bias", s.C, "hidden_size")};
  }
};

/// Parameters of a block, and the place of each.
struct Layout {
  std::vector<Parameter> parameters;
  Layer norm1, norm2, q, k, v, o, inner, outer;

  Layout(const std::string& prefix, const Shared& s, const Settings& settings) {
    ParameterList list(prefix, settings);
    const char *const kWidth = "hidden_size", *const kInner = "intermediate_size, hidden_size";
    norm1 = list.norm("layernorm_before", s.C, kWidth, true);
    q = list.linear("attention.attention.query", s.C, s.C, kWidth, s.qkv_bias);
    k = list.linear("attention.attention.key", s.C, s.C, kWidth, s.qkv_bias);
    v = list.linear("attention.attention.value", s.C, s.C, kWidth, s.qkv_bias);
    o = list.linear("attention.output.dense", s.C, s.C, kWidth, true);
    norm2 = list.norm("layernorm_after", s.C, kWidth, true);
    inner = list.linear("intermediate.dense", s.I, s.C, kInner, true);
    outer = list.linear("output.dense", s.C, s.I, kInner, true);
    parameters = list.parameters();
  }
};

class Block final : public unit::Unit {
 public:
  Block(std::int64_t index, const Shared& shared, const Settings& settings)
      : Block(index, shared, settings, Layout("vit.encoder.layer." + std::to_string(index) + ".", shared, settings)) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> owned, std::span<const Tensor>,
                 const ForwardContext& context) const override {
    const kernel::Kernels& kernels = *shared_.kernels;
    const double p = context.training ? shared_.dropout : 0;
    const std::uint64_t key = unit::mix(context.stream, name());
    const auto norm = [&](const Tensor& in, Layer by) {
      return kernels.norm(in, tensor_at(owned, by.weight), tensor_at(owned, by.bias), shared_.epsilon);
    };
    const auto project = [&](const Tensor& in, Layer by) {
      return kernel::adapted(kernels, in, kernels.project(in, tensor_at(owned, by.weight), tensor_at(owned, by.bias)),
                             adapter_of(*this, owned, by.weight));
    };
    const auto [x, normed_BTC] = norm(x_BTC, layout_.norm1);
    const Tensor attended_BTC =
        kernels.bidirectional_attention(project(normed_BTC, layout_.q), project(normed_BTC, layout_.k),
                                        project(normed_BTC, layout_.v), shared_.H, p, unit::mix(key, 1));
    const auto [middle, hidden_BTC] =
        norm(x + unit::dropout(project(attended_BTC, layout_.o), p, unit::mix(key, 2)), layout_.norm2);
    const Tensor inner_BTI = at::gelu(project(hidden_BTC, layout_.inner));
    return middle + unit::dropout(project(inner_BTI, layout_.outer), p, unit::mix(key, 3));
  }

 private:
  Shared shared_;
  Layout layout_;

  Block(std::int64_t index, const Shared& shared, const Settings& settings, Layout layout)
      : Unit("layer." + std::to_string(index), begun(layout.parameters, kPrefix, settings)),
        shared_(shared),
        layout_(std::move(layout)) {}
};

class Classifier final : public unit::Unit {
 public:
  Classifier(const Shared& shared, const Settings& settings, std::vector<unit::Extra> left_out)
      : Unit("classifier", begun(parameters(shared, settings), kPrefix, settings), -1, std::move(left_out)),
        shared_(shared) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> owned, std::span<const Tensor>,
                 const ForwardContext& context) const override {
    const kernel::Kernels& kernels = *shared_.kernels;
    const Tensor class_B1C = kernels.norm(x_BTC.narrow(1, 0, 1).contiguous(), owned[0], owned[1], shared_.epsilon).y;
    const Tensor logits_BL = kernels.project(class_B1C, owned[2], owned[3]).select(1, 0);
    if (context.logits) *context.logits = logits_BL;
    return at::cross_entropy_loss(logits_BL.to(at::kFloat), context.batch.targets);
  }

 private:
  Shared shared_;

  static std::vector<Parameter> parameters(const Shared& s, const Settings& settings) {
    std::vector<Parameter> parameters = {scale("vit.layernorm.weight", s.C, "hidden_size"),
                                         bias("vit.layernorm.bias", s.C, "hidden_size"),
                                         matrix("classifier.weight", {s.L, s.C}, settings, "id2label, hidden_size"),
                                         bias("classifier.bias", s.L, "id2label")};
    for (Parameter& parameter : parameters) parameter.head = parameter.name.starts_with("classifier.");
    return parameters;
  }
};

std::int64_t own_image_size(const Configuration& config) { return config.integer("image_size", 224); }

/// Patches along a side of `pixels`.
std::int64_t grid_of(const Configuration& config, std::int64_t pixels) {
  const std::int64_t patch = config.integer("patch_size", 16);
  if (pixels % patch != 0)
    config.refuse("patch_size", "is " + to_text(patch) + ", which does not divide the image size " + to_text(pixels));
  return pixels / patch;
}

std::int64_t image_size(const Configuration& config, const Settings& settings) {
  return settings.image_size > 0 ? settings.image_size : own_image_size(config);
}

Size size(const Configuration& config, const Settings& settings) {
  const std::int64_t grid = grid_of(config, image_size(config, settings));
  const Size size = {config.integer("num_hidden_layers", 12), config.integer("hidden_size", 768),
                     config.integer("num_attention_heads", 12), grid * grid + 1, 0};
  if (size.width % size.heads != 0)
    config.refuse("hidden_size", "is " + to_text(size.width) + ", which num_attention_heads " + to_text(size.heads) +
                                     " does not divide");
  return size;
}

/// The JSON that ViTConfig writes.
std::string config_json(const Model& model, const Shared& s, const Settings& settings) {
  nlohmann::ordered_json names = nlohmann::ordered_json::object(), numbers = nlohmann::ordered_json::object();
  for (std::int64_t i = 0; i < s.L; ++i) {
    const std::string& name = model.labels[static_cast<std::size_t>(i)];
    names[to_text(i)] = name;
    numbers[name] = i;
  }
  const nlohmann::ordered_json json = {{"architectures", {"ViTForImageClassification"}},
                                       {"model_type", "vit"},
                                       {"hidden_size", s.C},
                                       {"num_hidden_layers", model.num_layers},
                                       {"num_attention_heads", s.H},
                                       {"intermediate_size", s.I},
                                       {"hidden_act", "gelu"},
                                       {"hidden_dropout_prob", settings.dropout},
                                       {"attention_probs_dropout_prob", settings.dropout},
                                       {"initializer_range", settings.init_std},
                                       {"layer_norm_eps", s.epsilon},
                                       {"image_size", s.own_grid * s.P},
                                       {"patch_size", s.P},
                                       {"num_channels", kChannels},
                                       {"qkv_bias", s.qkv_bias},
                                       {"id2label", names},
                                       {"label2id", numbers},
                                       {"torch_dtype", "float32"}};
  return json.dump(2) + "\n";
}

void build(Model& model, const Configuration& config, const Settings& settings, std::int64_t total) {
  config.require("hidden_act", {"gelu"});
  config.require("num_channels", {kChannels});
  config.require_known_of_type(
      "hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act hidden_dropout_prob "
      "attention_probs_dropout_prob layer_norm_eps image_size patch_size num_channels qkv_bias encoder_stride "
      "pooler_output_size pooler_act",
      "vit");
  model.image_size = image_size(config, settings);
  model.labels = settings.labels.empty() ? labels_of(config) : settings.labels;
  if (settings.num_labels > 0 && std::ssize(model.labels) != settings.num_labels)
    model.labels = unnamed(settings.num_labels);
  model.num_labels = std::ssize(model.labels);
  if (model.num_labels < 1) config.refuse("id2label", "is empty: a classifier has labels");
  const std::int64_t grid = grid_of(config, model.image_size);
  const Shared shared{.C = model.width,
                      .H = model.num_heads,
                      .I = config.integer("intermediate_size", 3072),
                      .L = model.num_labels,
                      .P = config.integer("patch_size", 16),
                      .grid = grid,
                      // Without weights the positions have the size of the samples.
                      .own_grid = model.folder.empty() ? grid : grid_of(config, own_image_size(config)),
                      .qkv_bias = config.boolean("qkv_bias", true),
                      .epsilon = config.real("layer_norm_eps", 1e-12),
                      .dropout = settings.dropout,
                      .kernels = &kernel::chosen(settings.fused, settings.device)};
  model.units.push_back(std::make_unique<Embeddings>(shared, settings));
  for (std::int64_t i = 0; i < model.num_layers; ++i)
    model.units.push_back(std::make_unique<Block>(i, shared, settings));
  model.units.push_back(std::make_unique<Classifier>(
      shared, settings, left_out_blocks(model, total, {"vit.encoder.layer.", "encoder.layer."})));
  const std::int64_t T = model.positions, C = shared.C;
  const std::int64_t block = 4 * C * C + 2 * C * shared.I + 2 * C * T;
  const std::int64_t ends = (T - 1) * kChannels * shared.P * shared.P * C + C * shared.L;  // of a sample
  model.flops_per_token =
      6 * (static_cast<double>(model.num_layers * block) + static_cast<double>(ends) / static_cast<double>(T));
  model.config_json = config_json(model, shared, settings);
}

nlohmann::json meaning(const Configuration& config) {
  nlohmann::json decides = nlohmann::json::object();
  for (const char* const key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act", "layer_norm_eps",
        "image_size", "patch_size", "num_channels", "qkv_bias"}) {
    if (config.has(key)) decides[key] = config.values()[key];
  }
  if (config.has("id2label") || config.has("num_labels")) {
    const std::vector<std::string> labels = labels_of(config);
    decides["num_labels"] = labels.size();
    if (labels != unnamed(std::ssize(labels))) decides["id2label"] = labels;
  }
  return decides;
}

}  // namespace

Tensor bicubic(std::int64_t from, std::int64_t to) {
  constexpr double A = -0.75;
  const auto near = [](double x) { return ((A + 2) * x - (A + 3)) * x * x + 1; };       // |x| <= 1
  const auto far = [](double x) { return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A; };  // 1 < |x| < 2
  const Tensor side = at::zeros({to, from}, at::kDouble);
  auto weights = side.accessor<double, 2>();
  for (std::int64_t i = 0; i < to; ++i) {
    const double place = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const double floor = std::floor(place), t = place - floor;
    const std::array<double, 4> taps = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    for (std::int64_t tap = 0; tap < 4; ++tap) {
      const std::int64_t source = std::clamp<std::int64_t>(static_cast<std::int64_t>(floor) - 1 + tap, 0, from - 1);
      weights[i][source] += taps[static_cast<std::size_t>(tap)];
    }
  }
  return at::kron(side, side);
}

std::vector<std::string> unnamed(std::int64_t count) {
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back("LABEL_" + to_text(i));
  return labels;
}

std::vector<std::string> labels_of(const Configuration& config) {
  if (!config.has("id2label")) return unnamed(config.integer("num_labels", 2));
  const Configuration names = config.part("id2label");
  std::vector<std::string> labels = unnamed(std::ssize(names.values()));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = names.text(std::to_string(i).c_str(), labels[i]);
  return labels;
}

const Family& vit() {
  static const Family family = {"vit", size, build, meaning};
  return family;
}

}  // namespace zs::model

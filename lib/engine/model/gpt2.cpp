// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T tokens, C width, H heads, D = C/H, I inner width, V vocabulary.
#include "model/gpt2.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "kernel/kernels.hpp"
#include "model/next_token.hpp"
#include "model/parameters.hpp"
#include "unit/random.hpp"

namespace zs::model {
namespace {

using at::Tensor;
using unit::ForwardContext;
using unit::Parameter;

struct Shared {
  std::int64_t C, H, T, V, I;  // I: inner width
  double epsilon, dropout;
  const kernel::Kernels* kernels;
};

constexpr const char* kPrefix = "transformer.";

class Embedding final : public unit::Unit {
 public:
  Embedding(const Shared& shared, const Settings& settings)
      : Unit("embedding",
             begun({matrix("transformer.wte.weight", {shared.V, shared.C}, settings, "vocab_size, n_embd"),
                    matrix("transformer.wpe.weight", {shared.T, shared.C}, settings, "n_positions, n_embd")},
                   kPrefix, settings),
             -1, {{"lm_head.weight", "transformer.wte.weight"}}),
        shared_(shared) {}

  Tensor forward(const Tensor&, std::span<const Tensor> owned, std::span<const Tensor>,
                 const ForwardContext& context) const override {
    const Tensor& tokens_BT = context.batch.inputs;
    const auto& documents = context.batch.documents;
    const Tensor x_BTC = shared_.kernels->embedding(owned[0], tokens_BT) +
                         (documents ? shared_.kernels->embedding(owned[1], documents.positions)
                                    : owned[1].narrow(0, context.batch.first, tokens_BT.size(1)));
    return unit::dropout(x_BTC, context.training ? shared_.dropout : 0, unit::mix(context.stream, name()));
  }

 private:
  Shared shared_;
};

class Block final : public unit::Unit {
 public:
  Block(std::int64_t index, const Shared& shared, const Settings& settings, double residual_std)
      : Unit("h." + std::to_string(index),
             begun(parameters("transformer.h." + std::to_string(index) + ".", shared, settings, residual_std), kPrefix,
                   settings),
             -1,
             // Older transformers save the causal mask with each attention.
             {{".attn.bias", ""}, {".attn.masked_bias", ""}}),
        shared_(shared) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> owned, std::span<const Tensor>,
                 const ForwardContext& context) const override {
    const Layers layers(*this, owned, context);
    const auto [x, qkv_BTE] = layers.before_attention(x_BTC);
    return layers.after_attention(x, attend(qkv_BTE, layers.attending()));
  }

  std::vector<Tensor> forward_chunks(std::span<const unit::Chunk> chunks,
                                     const unit::Sequence& sequence) const override {
    std::vector<Layers> layers;
    std::vector<Tensor> residuals, out;
    std::vector<std::vector<Tensor>> parts;
    for (const unit::Chunk& chunk : chunks) {
      layers.emplace_back(*this, chunk.owned, chunk.context);
      const auto [x, qkv_BTE] = layers.back().before_attention(chunk.x);
      residuals.push_back(x), parts.push_back(qkv_BTE.chunk(3, 2));
    }
    const std::int64_t heads[] = {shared_.H, shared_.H, shared_.H};
    const std::vector<Tensor> attended =
        sequence.attend(parts, heads, [&](std::size_t block, const std::vector<Tensor>& qkv) {
          kernel::Attending how = layers[block].attending();
          how.heads = unit::heads_of_block(how.heads, sequence.chunks());
          return attend(at::cat(qkv, 2), how);
        });
    for (std::size_t i = 0; i < layers.size(); ++i) out.push_back(layers[i].after_attention(residuals[i], attended[i]));
    return out;
  }

  std::int64_t exchanged(std::int64_t) const override { return 4 * shared_.C; }

 private:
  Shared shared_;

  Tensor attend(const Tensor& qkv_BTE, const kernel::Attending& how) const {
    return how.documents.empty() ? shared_.kernels->attention(qkv_BTE, how.heads, how.dropout, how.key)
                                 : kernel::attention_of_documents(*shared_.kernels, qkv_BTE, how);
  }

  /// The layers with these parameters, before and after attention.
  class Layers {
   public:
    Layers(const Block& block, std::span<const Tensor> owned, const ForwardContext& context)
        : block_(&block),
          own_(owned),
          context_(&context),
          p_(context.training ? block.shared_.dropout : 0),
          key_(unit::mix(context.stream, block.name())) {}

    kernel::Attending attending() const {
      return {.heads = block_->shared_.H,
              .dropout = p_,
              .key = unit::mix(key_, 1),
              .documents = context_->document_begins()};
    }
    /// x, and its queries, keys and values.
    std::pair<Tensor, Tensor> before_attention(const Tensor& x_BTC) const {
      const auto [x, normed_BTC] = norm(x_BTC, 0);
      return {x, linear(normed_BTC, 2)};
    }
    Tensor after_attention(const Tensor& x_BTC, const Tensor& attended_BTC) const {
      const auto [middle, hidden_in_BTC] = norm(add(x_BTC, attended_BTC, 4, 2), 6);
      return add(middle, gelu(hidden_in_BTC, 8), 10, 3);
    }

   private:
    const Block* block_;
    std::span<const Tensor> own_;
    const ForwardContext* context_;
    double p_;
    std::uint64_t key_;

    const kernel::Kernels& kernels() const { return *block_->shared_.kernels; }
    std::size_t at(int weight) const { return static_cast<std::size_t>(weight); }
    kernel::Normed norm(const Tensor& in, int weight) const {
      return kernels().norm(in, own_[at(weight)], own_[at(weight + 1)], block_->shared_.epsilon);
    }
    Tensor adapted(const Tensor& in, int weight, const Tensor& product) const {
      return kernel::adapted(kernels(), in, product, adapter_of(*block_, own_, weight));
    }
    Tensor linear(const Tensor& in, int weight) const {
      return adapted(in, weight, kernels().linear(in, own_[at(weight)], own_[at(weight + 1)]));
    }
    Tensor add(const Tensor& residual, const Tensor& in, int weight, std::uint64_t site) const {
      if (p_ == 0)
        return adapted(in, weight, kernels().linear_add(in, own_[at(weight)], own_[at(weight + 1)], residual));
      return residual + unit::dropout(linear(in, weight), p_, unit::mix(key_, site));
    }
    Tensor gelu(const Tensor& in, int weight) const {
      if (adapter_of(*block_, own_, weight).defined()) return at::gelu(linear(in, weight), "tanh");
      return kernels().linear_gelu(in, own_[at(weight)], own_[at(weight + 1)]);
    }
  };

  static std::vector<Parameter> parameters(const std::string& prefix, const Shared& shared, const Settings& settings,
                                           double residual_std) {
    const std::int64_t C = shared.C, I = shared.I;
    std::vector<Parameter> parameters;
    int scales = 0;
    const auto layer_norm = [&](const std::string& name) {
      parameters.push_back(scale(prefix + name + ".weight", C, "n_embd"));
      parameters.push_back(bias(prefix + name + ".bias", C, "n_embd"));
    };
    const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out, const char* keys = "n_embd") {
      parameters.push_back(matrix(prefix + name + ".weight", {in, out}, settings, keys));
      parameters.back().product = Parameter::Product::in_out;
      parameters.back().float8_scale = scales++;
      if (name.ends_with(".c_proj")) parameters.back().std = residual_std;
      parameters.push_back(bias(prefix + name + ".bias", out, keys));
    };
    layer_norm("ln_1");
    linear("attn.c_attn", C, 3 * C);
    linear("attn.c_proj", C, C);
    layer_norm("ln_2");
    linear("mlp.c_fc", C, I, "n_embd, n_inner");
    linear("mlp.c_proj", I, C, "n_inner, n_embd");
    return parameters;
  }
};

class Head final : public unit::Unit {
 public:
  Head(const Shared& shared, const Settings& settings, std::vector<unit::Extra> left_out)
      : Unit("head",
             begun({scale("transformer.ln_f.weight", shared.C, "n_embd"),
                    bias("transformer.ln_f.bias", shared.C, "n_embd")},
                   kPrefix, settings),
             /*tied_to=*/0, std::move(left_out)),
        shared_(shared) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> owned, std::span<const Tensor> borrowed,
                 const ForwardContext& context) const override {
    const Tensor y_BTC = shared_.kernels->norm(x_BTC, owned[0], owned[1], shared_.epsilon).y;
    return next_token_loss(*shared_.kernels, y_BTC, borrowed[0], context);
  }

 private:
  Shared shared_;
};

/// The file with GPT-2's own names of the sizes. Where a size stands under both of its names, the other one counts, as
/// in GPT2Config.
Configuration named(const Configuration& given) {
  nlohmann::json values = given.values();
  for (const auto& [other, own] : {std::pair("hidden_size", "n_embd"),
                                   {"max_position_embeddings", "n_positions"},
                                   {"num_attention_heads", "n_head"},
                                   {"num_hidden_layers", "n_layer"}}) {
    if (!values.contains(other)) continue;
    values[own] = values[other];
    values.erase(other);
  }
  return {given.where(), values};
}

Size size(const Configuration& given, const Settings&) {
  const Configuration config = named(given);
  const Size size = {config.integer("n_layer", 12), config.integer("n_embd", 768), config.integer("n_head", 12),
                     config.integer("n_positions", 1024), config.integer("vocab_size", 50257)};
  if (size.width % size.heads != 0)
    config.refuse("n_embd", "is " + to_text(size.width) + ", which n_head " + to_text(size.heads) + " does not divide");
  return size;
}

std::int64_t inner_width(const Configuration& config) {
  return config.integer("n_inner", 4 * config.integer("n_embd", 768));
}

/// The JSON that GPT2Config writes.
std::string config_json(const Model& model, const Shared& shared, const Settings& settings) {
  const nlohmann::ordered_json json = {
      {"architectures", {"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"n_layer", model.num_layers},
      {"n_head", model.num_heads},
      {"n_embd", model.width},
      {"n_inner", shared.I == 4 * shared.C ? nlohmann::ordered_json() : nlohmann::ordered_json(shared.I)},
      {"n_positions", model.positions},
      {"vocab_size", model.vocab_size},
      {"activation_function", "gelu_new"},
      {"layer_norm_epsilon", shared.epsilon},
      {"embd_pdrop", settings.dropout},
      {"attn_pdrop", settings.dropout},
      {"resid_pdrop", settings.dropout},
      {"initializer_range", settings.init_std},
      {"tie_word_embeddings", true},
      {"torch_dtype", "float32"}};
  return json.dump(2) + "\n";
}

void build(Model& model, const Configuration& given, const Settings& settings, std::int64_t total) {
  const Configuration config = named(given);
  config.require("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  config.require("tie_word_embeddings", {true});
  config.require("scale_attn_weights", {true});
  config.require("scale_attn_by_inverse_layer_idx", {false});
  config.require("add_cross_attention", {false});
  config.require_known_of_type(
      "n_layer n_head n_embd n_inner n_positions n_ctx n_special vocab_size activation_function layer_norm_epsilon "
      "tie_word_embeddings scale_attn_weights summary_type summary_use_proj summary_activation summary_proj_to_labels "
      "summary_first_dropout reorder_and_upcast_attn predict_special_tokens output_past do_sample attn_pdrop",
      "gpt2");
  const Shared shared{.C = model.width,
                      .H = model.num_heads,
                      .T = model.positions,
                      .V = model.vocab_size,
                      .I = inner_width(config),
                      .epsilon = config.real("layer_norm_epsilon", 1e-5),
                      .dropout = settings.dropout,
                      .kernels = &kernel::chosen(settings.fused, settings.device)};
  const double residual_std = settings.init_std / std::sqrt(2.0 * static_cast<double>(model.num_layers));
  model.units.push_back(std::make_unique<Embedding>(shared, settings));
  for (std::int64_t i = 0; i < model.num_layers; ++i)
    model.units.push_back(std::make_unique<Block>(i, shared, settings, residual_std));
  model.units.push_back(
      std::make_unique<Head>(shared, settings, left_out_blocks(model, total, {"transformer.h.", "h."})));
  const double matrices = static_cast<double>(model.num_layers * (4 * shared.C * shared.C + 2 * shared.C * shared.I) +
                                              model.vocab_size * shared.C);
  const double attention = static_cast<double>(model.num_layers * 2 * shared.C * model.seq_length);
  model.flops_per_token = 6 * (matrices + attention);
  model.config_json = config_json(model, shared, settings);
}

nlohmann::json meaning(const Configuration& given) {
  const Configuration config = named(given);
  nlohmann::json decides = nlohmann::json::object();
  for (const char* const key : {"n_layer", "n_head", "n_embd", "n_positions", "vocab_size", "activation_function",
                                "layer_norm_epsilon", "tie_word_embeddings"}) {
    if (config.has(key)) decides[key] = config.values()[key];
  }
  // The same formula under two names.
  if (decides.value("activation_function", nlohmann::json()) == "gelu_pytorch_tanh")
    decides["activation_function"] = "gelu_new";
  if (config.values().contains("n_inner") && decides.value("n_embd", nlohmann::json()).is_number_unsigned())
    decides["n_inner"] =
        config.has("n_inner") ? config.values()["n_inner"] : nlohmann::json(4 * decides["n_embd"].get<std::uint64_t>());
  return decides;
}

}  // namespace

const Family& gpt2() {
  static const Family family = {"gpt2", size, build, meaning};
  return family;
}

}  // namespace zs::model

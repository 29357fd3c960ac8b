// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T tokens, C width, H heads of D numbers, K heads of keys and values, I inner width, V vocabulary.
#include "model/llama.hpp"

#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "kernel/kernels.hpp"
#include "model/next_token.hpp"
#include "model/parameters.hpp"
#include "model/rope.hpp"
#include "unit/random.hpp"

namespace zs::model {
namespace {

using at::Tensor;
using unit::ForwardContext;
using unit::Parameter;

constexpr const char* kPrefix = "model.";

struct Shared {
  std::int64_t C, H, K, D, I, V;
  bool attention_bias, mlp_bias, tied;
  double epsilon, dropout;
  Rope rope;
  Rotation rotation;
  const kernel::Kernels* kernels;
};

class Embedding final : public unit::Unit {
 public:
  Embedding(const Shared& shared, const Settings& settings)
      : Unit("embedding",
             begun({matrix("model.embed_tokens.weight", {shared.V, shared.C}, settings, "vocab_size, hidden_size")},
                   kPrefix, settings),
             -1,
             shared.tied
                 ? std::vector<unit::Extra>{{.suffix = "lm_head.weight", .same_as = "model.embed_tokens.weight"}}
                 : std::vector<unit::Extra>{}),
        kernels_(shared.kernels) {}

  Tensor forward(const Tensor&, std::span<const Tensor> own, std::span<const Tensor>,
                 const ForwardContext& context) const override {
    return kernels_->embedding(own[0], context.batch.inputs);
  }

 private:
  const kernel::Kernels* kernels_;
};

/// Parameters of a block, and the place of each.
struct Layout {
  std::vector<Parameter> parameters;
  Layer norm1, norm2, q, k, v, o, gate, up, down;

  Layout(const std::string& prefix, const Shared& s, const Settings& settings) {
    ParameterList list(prefix, settings);
    const char *const kQueries = "num_attention_heads, head_dim, hidden_size",
                      *const kKeys = "num_key_value_heads, head_dim, hidden_size",
                      *const kInner = "intermediate_size, hidden_size";
    norm1 = list.norm("input_layernorm", s.C, "hidden_size", false);
    q = list.linear("self_attn.q_proj", s.H * s.D, s.C, kQueries, s.attention_bias);
    k = list.linear("self_attn.k_proj", s.K * s.D, s.C, kKeys, s.attention_bias);
    v = list.linear("self_attn.v_proj", s.K * s.D, s.C, kKeys, s.attention_bias);
    o = list.linear("self_attn.o_proj", s.C, s.H * s.D, kQueries, s.attention_bias);
    norm2 = list.norm("post_attention_layernorm", s.C, "hidden_size", false);
    gate = list.linear("mlp.gate_proj", s.I, s.C, kInner, s.mlp_bias);
    up = list.linear("mlp.up_proj", s.I, s.C, kInner, s.mlp_bias);
    down = list.linear("mlp.down_proj", s.C, s.I, kInner, s.mlp_bias);
    parameters = list.parameters();
  }
};

class Block final : public unit::Unit {
 public:
  Block(std::int64_t index, const Shared& shared, const Settings& settings)
      : Block(index, shared, settings, Layout("model.layers." + std::to_string(index) + ".", shared, settings)) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> own, std::span<const Tensor>,
                 const ForwardContext& context) const override {
    const kernel::Kernels& kernels = *shared_.kernels;
    const auto projection = [&](Layer by) {
      return kernel::Projection{tensor_at(own, by.weight), tensor_at(own, by.bias)};
    };
    const Tensor middle_BTC = kernels.attention_layer(x_BTC, {.norm_C = tensor_at(own, layout_.norm1.weight),
                                                              .epsilon = shared_.epsilon,
                                                              .q = projection(layout_.q),
                                                              .k = projection(layout_.k),
                                                              .v = projection(layout_.v),
                                                              .o = projection(layout_.o),
                                                              .cos_TR = shared_.rotation.cos_TR,
                                                              .sin_TR = shared_.rotation.sin_TR,
                                                              .heads = shared_.H,
                                                              .dropout = context.training ? shared_.dropout : 0,
                                                              .key = unit::mix(context.stream, name())});
    return kernels.gated_layer(middle_BTC, {.norm_C = tensor_at(own, layout_.norm2.weight),
                                            .epsilon = shared_.epsilon,
                                            .gate = projection(layout_.gate),
                                            .up = projection(layout_.up),
                                            .down = projection(layout_.down)});
  }

 private:
  Shared shared_;
  Layout layout_;

  Block(std::int64_t index, const Shared& shared, const Settings& settings, Layout layout)
      : Unit("layers." + std::to_string(index), begun(layout.parameters, kPrefix, settings), -1,
             {{.suffix = ".rotary_emb.inv_freq"}}),  // older transformers save the frequencies with each attention
        shared_(shared),
        layout_(std::move(layout)) {}
};

class Head final : public unit::Unit {
 public:
  Head(const Shared& shared, const Settings& settings, std::vector<unit::Extra> left_out)
      : Unit("head", begun(parameters(shared, settings), kPrefix, settings), shared.tied ? 0 : -1, std::move(left_out)),
        shared_(shared) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> own, std::span<const Tensor> borrowed,
                 const ForwardContext& context) const override {
    const Tensor y_BTC = shared_.kernels->rms_norm(x_BTC, own[0], shared_.epsilon).y;
    return next_token_loss(*shared_.kernels, y_BTC, shared_.tied ? borrowed[0] : own[1], context);
  }

 private:
  Shared shared_;

  static std::vector<Parameter> parameters(const Shared& shared, const Settings& settings) {
    std::vector<Parameter> all = {scale("model.norm.weight", shared.C, "hidden_size")};
    if (!shared.tied)
      all.push_back(
          matrix("lm_head.weight", {shared.V, shared.C}, settings, "vocab_size, hidden_size, tie_word_embeddings"));
    return all;
  }
};

Size size(const Configuration& config, const Settings&) {
  return {config.integer("num_hidden_layers", 32), config.integer("hidden_size", 4096),
          config.integer("num_attention_heads", 32), config.integer("max_position_embeddings", 2048),
          config.integer("vocab_size", 32000)};
}

std::int64_t head_width(const Configuration& config, const Size& size) {
  if (!config.has("head_dim") && size.width % size.heads != 0)
    config.refuse("hidden_size", "is " + to_text(size.width) + ", which num_attention_heads " + to_text(size.heads) +
                                     " does not divide, and there is no head_dim");
  const std::int64_t D = config.integer("head_dim", size.width / size.heads, 2);
  if (D % 2 != 0) config.refuse("head_dim", "is " + to_text(D) + ": halves are rotated, so it must be even");
  return D;
}

std::int64_t key_value_heads(const Configuration& config, const Size& size) {
  const std::int64_t K = config.integer("num_key_value_heads", size.heads);
  if (size.heads % K != 0)
    config.refuse("num_key_value_heads",
                  "is " + to_text(K) + ", which does not divide num_attention_heads " + to_text(size.heads));
  return K;
}

/// As LlamaConfig of transformers 5 writes it; what versions before ask for under other names stands beside it.
std::string config_json(const Model& model, const Shared& s, const Settings& settings) {
  nlohmann::ordered_json json = {{"architectures", {"LlamaForCausalLM"}},
                                 {"model_type", "llama"},
                                 {"hidden_size", s.C},
                                 {"intermediate_size", s.I},
                                 {"num_hidden_layers", model.num_layers},
                                 {"num_attention_heads", s.H},
                                 {"num_key_value_heads", s.K},
                                 {"head_dim", s.D},
                                 {"hidden_act", "silu"},
                                 {"rms_norm_eps", s.epsilon},
                                 {"vocab_size", s.V},
                                 {"max_position_embeddings", model.positions},
                                 {"rope_parameters", to_json(s.rope)},
                                 {"rope_theta", s.rope.theta},
                                 {"attention_bias", s.attention_bias},
                                 {"attention_dropout", settings.dropout},
                                 {"mlp_bias", s.mlp_bias},
                                 {"initializer_range", settings.init_std},
                                 {"tie_word_embeddings", s.tied},
                                 {"torch_dtype", "float32"}};
  if (s.rope.type != "default") {
    json["rope_scaling"] = to_json(s.rope);
    json["rope_scaling"].erase("rope_theta");
  }
  return json.dump(2) + "\n";
}

void build(Model& model, const Configuration& config, const Settings& settings, std::int64_t total) {
  config.require("hidden_act", {"silu"});
  config.require("pretraining_tp", {1});
  const Size size = llama().size(config, settings);
  Shared shared{.C = model.width,
                .H = model.num_heads,
                .K = key_value_heads(config, size),
                .D = head_width(config, size),
                .I = config.integer("intermediate_size", 11008),
                .V = model.vocab_size,
                .attention_bias = config.boolean("attention_bias", false),
                .mlp_bias = config.boolean("mlp_bias", false),
                .tied = config.boolean("tie_word_embeddings", false),
                .epsilon = config.real("rms_norm_eps", 1e-6),
                .dropout = settings.dropout,
                .rope = rope_of(config, model.positions),
                .rotation = {},
                .kernels = &kernel::chosen(settings.fused, settings.device)};
  shared.rotation = rotation(shared.rope, model.seq_length, shared.D, settings.device);
  model.units.push_back(std::make_unique<Embedding>(shared, settings));
  for (std::int64_t i = 0; i < model.num_layers; ++i)
    model.units.push_back(std::make_unique<Block>(i, shared, settings));
  model.units.push_back(
      std::make_unique<Head>(shared, settings, left_out_blocks(model, total, {"model.layers.", "layers."})));
  const std::int64_t block = shared.C * shared.D * 2 * (shared.H + shared.K) + 3 * shared.C * shared.I;
  const std::int64_t attention = 2 * shared.H * shared.D * model.seq_length;
  model.flops_per_token =
      6 * static_cast<double>(model.num_layers * (block + attention) + model.vocab_size * model.width);
  model.config_json = config_json(model, shared, settings);
}

nlohmann::json meaning(const Configuration& config) {
  nlohmann::json decides = nlohmann::json::object();
  for (const char* const key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                "num_key_value_heads", "head_dim", "hidden_act", "rms_norm_eps", "vocab_size",
                                "max_position_embeddings", "attention_bias", "mlp_bias", "tie_word_embeddings"}) {
    if (config.has(key)) decides[key] = config.values()[key];
  }
  if (config.has("rope_parameters") || config.has("rope_scaling") || config.has("rope_theta"))
    decides["rope_parameters"] = to_json(rope_of(config, config.integer("max_position_embeddings", 2048)));
  return decides;
}

}  // namespace

const Family& llama() {
  static const Family family = {
      "llama",
      {{"tiny-llama", "zs",
        R"({"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256})"},
       {"TinyLlama-1.1B", "TinyLlama",
        R"({"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
            "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5})"},
       {"Llama-2-7b-hf", "meta-llama", R"({"max_position_embeddings": 4096, "rms_norm_eps": 1e-5})"},
       {"Meta-Llama-3-8B", "meta-llama",
        R"({"intermediate_size": 14336, "num_key_value_heads": 8, "vocab_size": 128256, "rms_norm_eps": 1e-5,
            "max_position_embeddings": 8192, "rope_theta": 500000.0})"},
       {"Meta-Llama-3-70B", "meta-llama",
        R"({"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
            "num_key_value_heads": 8, "vocab_size": 128256, "rms_norm_eps": 1e-5, "max_position_embeddings": 8192,
            "rope_theta": 500000.0})"},
       {"Meta-Llama-3.1-8B", "meta-llama",
        R"({"intermediate_size": 14336, "num_key_value_heads": 8, "vocab_size": 128256, "rms_norm_eps": 1e-5,
            "max_position_embeddings": 131072, "rope_theta": 500000.0,
            "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 8192}})"},
       {"Llama-3.2-1B", "meta-llama",
        R"({"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_key_value_heads": 8,
            "head_dim": 64, "vocab_size": 128256, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
            "rope_theta": 500000.0, "tie_word_embeddings": true,
            "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 8192}})"},
       {"Llama-3.2-3B", "meta-llama",
        R"({"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
            "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256, "rms_norm_eps": 1e-5,
            "max_position_embeddings": 131072, "rope_theta": 500000.0, "tie_word_embeddings": true,
            "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 8192}})"}},
      size,
      build,
      meaning};
  return family;
}

}  // namespace zs::model

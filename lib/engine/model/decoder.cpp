// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T tokens, C width, H heads of D numbers, K heads of keys and values, I inner width, V vocabulary.
#include "model/decoder.hpp"

#include <algorithm>
#include <cmath>

#include "model/next_token.hpp"
#include "model/parameters.hpp"
#include "unit/random.hpp"

namespace zs::model {
namespace {

using at::Tensor;
using unit::ForwardContext;
using unit::Parameter;
using HeadNorm = Description::HeadNorm;
using kernel::NormScale;

constexpr const char* kPrefix = "model.";

/// Shared by the units of a model.
struct Shared {
  const Description* family;
  Decoder decoder;
  Rotation rotation, local_rotation;
  const kernel::Kernels* kernels;
};

/// Splits the product of a joined matrix into one product for each block of rows.
std::vector<kernel::Projection> parts(const kernel::Projection& joined, std::initializer_list<std::int64_t> rows) {
  std::vector<kernel::Projection> parts;
  std::int64_t row = 0;
  // The shared factor is a view, so that its gradients are added up before they reach the parameter, as in every graph.
  kernel::Adapter shared = joined.adapter;
  if (shared.defined()) shared.a_RI = shared.a_RI.view(shared.a_RI.sizes());
  for (const std::int64_t count : rows) {
    parts.push_back({joined.weight_OI.narrow(0, row, count), {}, shared});
    if (shared.defined()) parts.back().adapter.b_OR = joined.adapter.b_OR.narrow(0, row, count);
    row += count;
  }
  return parts;
}

/// A norm's weight, which begins so that it multiplies with 1.
Parameter norm_begun(const Description& family, Parameter weight) {
  if (family.norm_scale == NormScale::plus_one) weight.init = Parameter::Init::zeros;
  return weight;
}

class Embedding final : public unit::Unit {
 public:
  Embedding(const Shared& shared, const Settings& settings)
      : Unit("embedding",
             begun({matrix("model.embed_tokens.weight", {shared.decoder.V, shared.decoder.C}, settings,
                           "vocab_size, hidden_size")},
                   kPrefix, settings),
             -1,
             shared.decoder.tied
                 ? std::vector<unit::Extra>{{.suffix = "lm_head.weight", .same_as = "model.embed_tokens.weight"}}
                 : std::vector<unit::Extra>{}),
        kernels_(shared.kernels),
        scale_(shared.family->scaled_embedding ? std::sqrt(static_cast<double>(shared.decoder.C)) : 1),
        padding_(shared.decoder.padding) {}

  Tensor forward(const Tensor&, std::span<const Tensor> owned, std::span<const Tensor>,
                 const ForwardContext& context) const override {
    Tensor x_BTC = kernels_->embedding(owned[0], context.batch.inputs);
    if (padding_ >= 0) x_BTC = at::where(context.batch.inputs.eq(padding_).unsqueeze(-1), x_BTC.detach(), x_BTC);
    return scale_ == 1 ? x_BTC : x_BTC * at::full({}, scale_, x_BTC.options());  // of 16 bits, the scale is too
  }

 private:
  const kernel::Kernels* kernels_;
  double scale_;
  std::int64_t padding_;
};

/// Parameters of a block, and the place of each; joined, q and gate are all of their matrix.
struct Layout {
  std::vector<Parameter> parameters;
  Layer norm1, q, k, v, o, q_norm, k_norm, post_norm1, norm2, gate, up, down, post_norm2;
  Layer router;  // used instead of gate, up and down if the block has experts, which are a separate unit
  int sinks = -1;

  Layout(std::int64_t index, const Description& family, const Decoder& s, const Settings& settings) {
    const std::string prefix = "model.layers." + std::to_string(index) + ".";
    ParameterList list(prefix, settings);
    const char *const kQueries = "num_attention_heads, head_dim, hidden_size",
                      *const kKeys = "num_key_value_heads, head_dim, hidden_size",
                      *const kInner = "intermediate_size, hidden_size";
    const auto norm = [&](const char* name, std::int64_t size, const char* keys) {
      return list.norm(name, size, keys, /*with_bias=*/false);
    };
    if (family.norm_before) norm1 = norm("input_layernorm", s.C, "hidden_size");
    if (family.joined) {
      q = list.linear("self_attn.qkv_proj", (s.H + 2 * s.K) * s.D, s.C,
                      "num_attention_heads, num_key_value_heads, head_dim, hidden_size", s.input_bias);
    } else {
      q = list.linear("self_attn.q_proj", s.H * s.D, s.C, kQueries, s.input_bias);
      k = list.linear("self_attn.k_proj", s.K * s.D, s.C, kKeys, s.input_bias);
      v = list.linear("self_attn.v_proj", s.K * s.D, s.C, kKeys, s.input_bias);
    }
    o = list.linear("self_attn.o_proj", s.C, s.H * s.D, kQueries, s.output_bias);
    list.multiplied_together({q, k, v});
    list.multiplied_together({o});
    if (family.sinks) sinks = list.add(matrix("self_attn.sinks", {s.H}, settings, "num_attention_heads"));
    if (family.head_norm != HeadNorm::none) {
      const bool each = family.head_norm == HeadNorm::each;
      q_norm = norm("self_attn.q_norm", each ? s.D : s.H * s.D, each ? "head_dim" : "num_attention_heads, head_dim");
      k_norm = norm("self_attn.k_norm", each ? s.D : s.K * s.D, each ? "head_dim" : "num_key_value_heads, head_dim");
    }
    if (family.norm_after) post_norm1 = norm("post_attention_layernorm", s.C, "hidden_size");
    if (family.norm_before)
      norm2 = norm(family.norm_after ? "pre_feedforward_layernorm" : "post_attention_layernorm", s.C, "hidden_size");
    if (s.mixture.in(index)) {
      router = add_router(*family.experts, s.mixture, s.C, settings, list);
    } else {
      if (family.joined) {
        gate = list.linear("mlp.gate_up_proj", 2 * s.I, s.C, kInner, s.mlp_bias);
      } else {
        gate = list.linear("mlp.gate_proj", s.I, s.C, kInner, s.mlp_bias);
        up = list.linear("mlp.up_proj", s.I, s.C, kInner, s.mlp_bias);
      }
      down = list.linear("mlp.down_proj", s.C, s.I, kInner, s.mlp_bias);
      list.multiplied_together({gate, up});
      list.multiplied_together({down});
    }
    if (family.norm_after) post_norm2 = norm("post_feedforward_layernorm", s.C, "hidden_size");
    parameters = list.parameters();
    for (const Layer& each : {norm1, q_norm, k_norm, post_norm1, norm2, post_norm2}) {
      if (each.weight < 0) continue;
      Parameter& weight = parameters[static_cast<std::size_t>(each.weight)];
      weight = norm_begun(family, weight);
    }
  }
};

class Block final : public unit::Unit {
 public:
  Block(std::int64_t index, const Shared& shared, const Settings& settings)
      : Block(index, shared, settings, Layout(index, *shared.family, shared.decoder, settings)) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> owned, std::span<const Tensor>,
                 const ForwardContext& context) const override {
    return feed_forward(shared_.kernels->attention_layer(x_BTC, attention(owned, context, x_BTC.size(1))), owned);
  }

  std::vector<Tensor> forward_chunks(std::span<const unit::Chunk> chunks,
                                     const unit::Sequence& sequence) const override {
    const kernel::Kernels& kernels = *shared_.kernels;
    std::vector<kernel::AttentionLayer> layers;
    std::vector<Tensor> residuals, outputs;
    std::vector<std::vector<Tensor>> parts;
    for (const unit::Chunk& chunk : chunks) {
      layers.push_back(attention(chunk.owned, chunk.context, chunk.x.size(1) * sequence.chunks()));
      const kernel::AttentionInputs in = kernel::attention_inputs(kernels, chunk.x, layers.back());
      residuals.push_back(in.x_BTC), parts.push_back({in.q_BTE, in.k_BTF, in.v_BTF});
    }
    const std::int64_t heads[] = {shared_.decoder.H, shared_.decoder.K, shared_.decoder.K};
    const std::vector<Tensor> attended =
        sequence.attend(parts, heads, [&](std::size_t block, const std::vector<Tensor>& qkv) {
          kernel::Attending how = layers[block].attending;
          // A rank has blocks of the same numbers as chunks.
          const std::int64_t number = chunks[block].context.batch.first / chunks[block].x.size(1),
                             first = unit::first_head(number, how.heads, sequence.chunks());
          how.heads = unit::heads_of_block(how.heads, sequence.chunks());
          if (how.sinks_H.defined()) how.sinks_H = how.sinks_H.narrow(0, first, how.heads);
          return kernel::attend(kernels, qkv[0], qkv[1], qkv[2], how);
        });
    for (std::size_t i = 0; i < chunks.size(); ++i)
      outputs.push_back(
          feed_forward(kernel::attention_output(kernels, residuals[i], attended[i], layers[i]), chunks[i].owned));
    return outputs;
  }

  /// The tensors of the layer that its experts read. REQUIRES: it has experts.
  Routed routed(std::span<const Tensor> owned) const {
    return {norm(owned, layout_.norm2), shared_.decoder.epsilon, projection(owned, layout_.router)};
  }

  std::int64_t exchanged(std::int64_t chunks) const override {
    const Decoder& s = shared_.decoder;
    return 2 * s.D * (s.H + unit::heads_of_block(s.K, chunks) * chunks);
  }

 private:
  Shared shared_;
  Layout layout_;
  std::int64_t window_;

  kernel::Projection projection(std::span<const Tensor> owned, Layer by) const {
    return {tensor_at(owned, by.weight), tensor_at(owned, by.bias), adapter_of(*this, owned, by.weight)};
  }
  kernel::NormWeight norm(std::span<const Tensor> owned, Layer by) const {
    return {tensor_at(owned, by.weight), shared_.family->norm_scale};
  }

  /// The attention of samples with this number of tokens.
  kernel::AttentionLayer attention(std::span<const Tensor> owned, const ForwardContext& context,
                                   std::int64_t tokens) const {
    const Decoder& s = shared_.decoder;
    kernel::Projection q = projection(owned, layout_.q), k = projection(owned, layout_.k),
                       v = projection(owned, layout_.v);
    if (shared_.family->joined) {
      const std::vector<kernel::Projection> qkv = parts(q, {s.H * s.D, s.K * s.D, s.K * s.D});
      q = qkv[0], k = qkv[1], v = qkv[2];
    }
    // A window as long as the sample is none.
    const bool sees_all = window_ == 0 || window_ >= tokens;
    const Rotation rotation =
        (window_ > 0 && shared_.family->two_ropes ? shared_.local_rotation : shared_.rotation).of(context.batch);
    return {.norm_C = norm(owned, layout_.norm1),
            .epsilon = s.epsilon,
            .q = q,
            .k = k,
            .v = v,
            .o = projection(owned, layout_.o),
            .cos_TR = rotation.cos_TR,
            .sin_TR = rotation.sin_TR,
            .attending = {.heads = s.H,
                          .dropout = context.training ? s.dropout : 0,
                          .key = unit::mix(context.stream, name()),
                          .scale = s.scale,
                          .cap = s.score_cap,
                          .window = sees_all ? 0 : window_,
                          .documents = context.document_begins(),
                          .sinks_H = tensor_at(owned, layout_.sinks)},
            .q_norm = norm(owned, layout_.q_norm),
            .k_norm = norm(owned, layout_.k_norm),
            .post_norm_C = norm(owned, layout_.post_norm1)};
  }

  /// Returns x unchanged for a block with experts: they are the next unit.
  Tensor feed_forward(const Tensor& x_BTC, std::span<const Tensor> owned) const {
    const Decoder& s = shared_.decoder;
    if (layout_.router.weight >= 0) return x_BTC;
    kernel::Projection gate = projection(owned, layout_.gate), up = projection(owned, layout_.up);
    if (shared_.family->joined) {
      const std::vector<kernel::Projection> inner = parts(gate, {s.I, s.I});
      gate = inner[0], up = inner[1];
    }
    return shared_.kernels->gated_layer(x_BTC, {.norm_C = norm(owned, layout_.norm2),
                                                .epsilon = s.epsilon,
                                                .gate = gate,
                                                .up = up,
                                                .down = projection(owned, layout_.down),
                                                .activation = shared_.family->activation,
                                                .post_norm_C = norm(owned, layout_.post_norm2),
                                                .last = true});
  }

  Block(std::int64_t index, const Shared& shared, const Settings& settings, Layout layout)
      : Unit("layers." + std::to_string(index), begun(layout.parameters, kPrefix, settings), -1,
             {{.suffix = ".rotary_emb.inv_freq"}}),  // older transformers save the frequencies with each attention
        shared_(shared),
        layout_(std::move(layout)),
        window_(shared.decoder.windows[static_cast<std::size_t>(index)]) {}
};

/// The experts of a block, or some of them, as a separate unit: they may be divided among ranks. It reads the block's
/// norm and router.
class BlockExperts final : public unit::Unit {
 public:
  /// Data that all its parts share; the block is unit number `number` of the model.
  struct Of {
    const Block* block;
    int number;
    Shared shared;
    Settings settings;
  };
  BlockExperts(const Of& layer, std::int64_t begin, std::int64_t end)
      : BlockExperts(layer, begin, end, ParameterList(kPrefix + layer.block->name() + ".", layer.settings)) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> owned, std::span<const Tensor> borrowed,
                 const ForwardContext& context) const override {
    return experts_.forward(*of_.shared.kernels, x_BTC, of_.block->routed(borrowed), owned, context);
  }
  std::int64_t experts() const override { return of_.shared.decoder.mixture.count; }
  std::unique_ptr<Unit> part(std::int64_t begin, std::int64_t end) const override {
    return std::make_unique<BlockExperts>(of_, begin, end);
  }
  std::int64_t routed() const override { return 2 * of_.shared.decoder.mixture.chosen * of_.shared.decoder.C; }

 private:
  Of of_;
  Experts experts_;

  BlockExperts(const Of& layer, std::int64_t begin, std::int64_t end, ParameterList list)
      : BlockExperts(layer, list,
                     Experts(*layer.shared.family->experts, layer.shared.decoder.mixture, layer.shared.decoder.C, begin,
                             end, layer.settings, list)) {}
  BlockExperts(const Of& layer, const ParameterList& list, Experts experts)
      : Unit(layer.block->name() + ".experts", begun(list.parameters(), kPrefix, layer.settings), layer.number),
        of_(layer),
        experts_(std::move(experts)) {}
};

class Head final : public unit::Unit {
 public:
  Head(const Shared& shared, const Settings& settings, std::vector<unit::Extra> left_out)
      : Unit("head", begun(parameters(shared, settings), kPrefix, settings), shared.decoder.tied ? 0 : -1,
             std::move(left_out)),
        shared_(shared) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> owned, std::span<const Tensor> borrowed,
                 const ForwardContext& context) const override {
    const Tensor loss = of_tokens(x_BTC, owned, borrowed, context);
    const Mixture& mixture = shared_.decoder.mixture;
    return mixture.adds_auxiliary && context.training ? loss + auxiliary_loss(mixture, context) : loss;
  }

  std::vector<Tensor> forward_chunks(std::span<const unit::Chunk> chunks,
                                     const unit::Sequence& sequence) const override {
    std::vector<Tensor> losses;
    for (const unit::Chunk& chunk : chunks)
      losses.push_back(of_tokens(chunk.x, chunk.owned, chunk.borrowed, chunk.context));
    if (!shared_.decoder.mixture.adds_auxiliary || !chunks.front().context.training) return losses;
    const std::vector<Tensor> more = auxiliary_losses(shared_.decoder.mixture, chunks, sequence);
    for (std::size_t i = 0; i < losses.size(); ++i) losses[i] = losses[i] + more[i];
    return losses;
  }

 private:
  Shared shared_;

  Tensor of_tokens(const Tensor& x_BTC, std::span<const Tensor> owned, std::span<const Tensor> borrowed,
                   const ForwardContext& context) const {
    const Tensor y_BTC =
        shared_.kernels->rms_norm(x_BTC, {owned[0], shared_.family->norm_scale}, shared_.decoder.epsilon).y;
    return next_token_loss(*shared_.kernels, y_BTC, shared_.decoder.tied ? borrowed[0] : owned[1], context,
                           shared_.decoder.logit_cap);
  }

  static std::vector<Parameter> parameters(const Shared& shared, const Settings& settings) {
    std::vector<Parameter> parameters = {
        norm_begun(*shared.family, scale("model.norm.weight", shared.decoder.C, "hidden_size"))};
    if (!shared.decoder.tied) {
      parameters.push_back(matrix("lm_head.weight", {shared.decoder.V, shared.decoder.C}, settings,
                                  "vocab_size, hidden_size, tie_word_embeddings"));
    }
    return parameters;
  }
};

}  // namespace

void build_decoder(const Description& family, Model& model, const Configuration& config, const Settings& settings,
                   std::int64_t total) {
  Shared shared{.family = &family,
                .decoder = read_decoder(family, config, model, settings),
                .rotation = {},
                .local_rotation = {},
                .kernels = &kernel::chosen(settings.fused, settings.device)};
  const Decoder& s = shared.decoder;
  model.num_key_value_heads = s.K;
  shared.rotation = rotation(s.rope, model.seq_length, s.D, settings.device);
  if (family.two_ropes) shared.local_rotation = rotation(s.local_rope, model.seq_length, s.D, settings.device);
  model.units.push_back(std::make_unique<Embedding>(shared, settings));
  for (std::int64_t i = 0; i < model.num_layers; ++i) {
    auto block = std::make_unique<Block>(i, shared, settings);
    const Block& layer = *block;
    model.units.push_back(std::move(block));
    const int number = static_cast<int>(model.units.size()) - 1;
    if (s.mixture.in(i))
      model.units.push_back(
          std::make_unique<BlockExperts>(BlockExperts::Of{&layer, number, shared, settings}, 0, s.mixture.count));
  }
  model.units.push_back(
      std::make_unique<Head>(shared, settings, left_out_blocks(model, total, {"model.layers.", "layers."})));
  const Mixture& m = s.mixture;
  const std::int64_t heads = s.C * s.D * 2 * (s.H + s.K), dense = model.num_layers - m.number();
  const std::int64_t products =
      model.num_layers * heads + dense * 3 * s.C * s.I + m.number() * s.C * (m.count + 3 * m.chosen * m.width);
  std::int64_t attention = 0;
  for (const std::int64_t window : s.windows)
    attention += 2 * s.H * s.D * (window > 0 ? std::min(window, model.seq_length) : model.seq_length);
  model.flops_per_token = 6 * static_cast<double>(products + attention + model.vocab_size * model.width);
  model.config_json = decoder_json(family, s, model, settings);
}

}  // namespace zs::model

// SPDX-License-Identifier: Apache-2.0
// A decoder's config.json, read and written.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "base/words.hpp"
#include "model/decoder.hpp"

namespace zs::model {
namespace {

using Json = nlohmann::json;

/// Keys of every decoder that decide what a model computes.
constexpr std::string_view kDecide =
    "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim hidden_act "
    "rms_norm_eps vocab_size max_position_embeddings tie_word_embeddings rope_parameters rope_theta rope_scaling "
    "partial_rotary_factor";
/// For these keys null means none; it does not select the fallback.
constexpr std::string_view kNullable =
    "sliding_window attn_logit_softcapping final_logit_softcapping num_key_value_heads";
/// More experts than any model has; each has separate parameters.
constexpr std::int64_t kMostExperts = 1 << 14;
/// The keys that windows() reads.
constexpr std::string_view kWindows =
    "sliding_window use_sliding_window max_window_layers layer_types sliding_window_pattern";

/// Keys of every decoder with experts.
constexpr std::string_view kMixture =
    "num_experts_per_tok router_aux_loss_coef output_router_logits router_jitter_noise";
/// Keys that decide the loss, and no shape or output.
constexpr std::string_view kOfLoss = "router_aux_loss_coef output_router_logits";
/// The keys that sparse() reads.
constexpr std::string_view kSparse = "decoder_sparse_step mlp_only_layers";

/// The file's values over the family's own.
Configuration complete(const Description& family, const Configuration& config) {
  Json values = Json::parse(family.defaults);
  if (family.rope && !config.has("rope_parameters") && !config.has("rope_scaling"))
    values["rope_parameters"] = Json::parse(family.rope);
  for (const auto& [key, value] : config.values().items()) {
    if (!value.is_null() || has_word(kNullable, key)) values[key] = value;
  }
  return {config.where(), values};
}

void require_known(const Description& family, const Configuration& config) {
  std::string known(kDecide);
  if (family.experts) known += " " + std::string(kMixture);
  for (const auto* const keys : {&family.keys, &family.ignored}) known += " " + joined(*keys, " ");
  config.require_known_of_type(known, family.type);
}

std::int64_t head_width(const Configuration& config, const Size& size) {
  if (!config.has("head_dim") && size.width % size.heads != 0)
    config.refuse("hidden_size", "is " + to_text(size.width) + ", which num_attention_heads " + to_text(size.heads) +
                                     " does not divide, and head_dim is missing");
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

/// The row of the embedding that is for padding; -1 if none is. A model by name has none, a folder that of its class.
std::int64_t padding(const Description& family, const Configuration& config, const Model& model) {
  const char* const key = "pad_token_id";
  const bool said = config.values().contains(key);
  if (!config.has(key)) return said || model.folder.empty() || family.padding >= model.vocab_size ? -1 : family.padding;
  const std::int64_t token = config.integer(key, 0, -model.vocab_size);
  if (token >= model.vocab_size)
    config.refuse(key, "is " + to_text(token) + ", expected less than vocab_size " + to_text(model.vocab_size));
  return token < 0 ? token + model.vocab_size : token;  // counted from the end, as torch's Embedding does
}

/// The window of each layer; 0 if it has none.
std::vector<std::int64_t> windows(const Description& family, const Configuration& config, std::int64_t layers) {
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
  if (!family.has("sliding_window")) return windows;
  const bool used = !family.has("use_sliding_window") || config.boolean("use_sliding_window", false);
  const std::int64_t window = used ? config.integer("sliding_window", 0) : 0;
  if (family.has("layer_types") && config.has("layer_types")) {
    const Json& types = config.values()["layer_types"];
    if (!types.is_array() || static_cast<std::int64_t>(types.size()) != config.integer("num_hidden_layers", 0))
      config.refuse("layer_types", "is not a list of num_hidden_layers texts");
    for (std::size_t i = 0; i < std::min(windows.size(), types.size()); ++i) {
      if (types[i] != "full_attention" && types[i] != "sliding_attention")
        config.refuse("layer_types", "has " + types[i].dump() + ", zs knows full_attention and sliding_attention");
      if (types[i] == "full_attention") continue;
      if (window == 0) config.refuse("layer_types", "has sliding_attention, but sliding_window is not in use");
      windows[i] = window;
    }
    return windows;
  }
  const std::int64_t first = family.has("max_window_layers") ? config.integer("max_window_layers", 0, 0) : 0;
  const std::int64_t period = family.has("sliding_window_pattern")
                                  ? config.integer("sliding_window_pattern", family.window_period)
                                  : family.window_period;
  for (std::int64_t i = first; i < layers; ++i) {
    if (period == 1 || (i + 1) % period != 0) windows[static_cast<std::size_t>(i)] = window;
  }
  return windows;
}

/// For each layer, whether it has experts.
std::vector<bool> sparse(const Configuration& config, std::int64_t layers) {
  const std::int64_t step = config.integer("decoder_sparse_step", 1);
  std::vector<bool> sparse(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) sparse[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
  if (!config.has("mlp_only_layers")) return sparse;
  const Json& dense = config.values()["mlp_only_layers"];
  for (const Json& layer : dense.is_array() ? dense : Json::array({dense})) {
    if (!layer.is_number_unsigned())
      config.refuse("mlp_only_layers", "is " + dense.dump() + ", expected a list of numbers of layers");
    if (layer.get<std::int64_t>() < layers) sparse[layer.get<std::size_t>()] = false;
  }
  return sparse;
}

/// The key in the family's files, which may have either name.
const char* count_key(const Description& family, const Configuration& config) {
  return family.has("num_experts") && config.has("num_experts") ? "num_experts" : "num_local_experts";
}

Mixture mixture(const Description& family, const Configuration& config, std::int64_t layers, const Settings& settings) {
  if (!family.experts) return {};
  const char* const key = count_key(family, config);
  Mixture m{.count = config.integer(key, 0, 1),
            .chosen = config.integer("num_experts_per_tok", 1),
            .width = config.integer(family.experts->width, 1),
            .routing = family.experts->stacked() ? kernel::Routing::chosen : kernel::Routing::normalised,
            .auxiliary = config.real("router_aux_loss_coef", 0),
            .adds_auxiliary = config.boolean("output_router_logits", false),
            .alpha = config.real("swiglu_alpha", 0),
            .limit = config.real("swiglu_limit", 0),
            .layers = sparse(config, layers)};
  if (m.count > kMostExperts)
    config.refuse(key, "is " + to_text(m.count) + ", expected at most " + to_text(kMostExperts));
  if (m.chosen > m.count)
    config.refuse("num_experts_per_tok", "is " + to_text(m.chosen) + ", of " + to_text(m.count) + " experts");
  if (family.has("norm_topk_prob") && !config.boolean("norm_topk_prob", false)) m.routing = kernel::Routing::all;
  if (settings.router_aux_loss_coef >= 0) m.auxiliary = settings.router_aux_loss_coef, m.adds_auxiliary = true;
  if (m.auxiliary == 0 || m.number() == 0) m.adds_auxiliary = false;
  return m;
}

struct Ropes {
  Rope global, local;
};
Ropes ropes(const Description& family, const Configuration& config, std::int64_t positions) {
  RopeDefaults defaults{.positions = positions, .phi = family.joined};
  if (family.has("original_max_position_embeddings"))
    defaults.original_positions = config.integer("original_max_position_embeddings", positions);
  if (!family.two_ropes) return {rope_of(config, defaults), {}};
  defaults.theta = config.real("rope_theta", defaults.theta);
  RopeDefaults local = defaults;
  local.theta = config.real("rope_local_base_freq", local.theta);
  const Configuration both = config.part("rope_parameters"), scaling = config.part("rope_scaling");
  both.require_known("full_attention sliding_attention", "rotary positions by kind of layer");
  const Ropes read{rope_in(config.has("rope_parameters") ? both.part("full_attention") : scaling, defaults),
                   rope_in(both.part("sliding_attention"), local)};
  if (config.has("rope_parameters") && config.has("rope_scaling")) {
    defaults.theta = read.global.theta;
    if (rope_in(scaling, defaults) != read.global)
      config.refuse("rope_scaling", "is unlike rope_parameters.full_attention: leave one of them out");
  }
  return read;
}

/// null for 0.
Json or_null(const Json& value) { return value == 0 ? Json() : value; }

Json rope_json(const Description& family, const Decoder& s) {
  if (!family.two_ropes) return to_json(s.rope);
  return {{"full_attention", to_json(s.rope)}, {"sliding_attention", to_json(s.local_rope)}};
}

/// In the form of releases before transformers 5; null if they have no form for it, or need none.
Json rope_scaling(const Description& family, const Decoder& s, std::int64_t positions) {
  if (s.rope.type == "default") return {};
  Json json = to_json(s.rope);
  json.erase("rope_theta");
  if (!family.has("original_max_position_embeddings")) return json;
  // Phi-3's class takes these three keys alone.
  json = {{"type", s.rope.type}, {"short_factor", s.rope.short_factor}, {"long_factor", s.rope.long_factor}};
  const Rope again = rope_in({"", json}, {.theta = s.rope.theta,
                                          .fraction = s.rope.fraction,
                                          .positions = positions,
                                          .original_positions = s.rope.original_positions,
                                          .phi = true});
  return again == s.rope ? json : Json();
}

}  // namespace

bool Description::has(std::string_view key) const { return std::ranges::count(keys, key) > 0; }

Size decoder_size(const Description& family, const Configuration& given) {
  const Configuration config = complete(family, given);
  return {config.integer("num_hidden_layers", 1),   config.integer("hidden_size", 1),
          config.integer("num_attention_heads", 1), config.integer("max_position_embeddings", 1),
          config.integer("vocab_size", 1),          family.experts ? config.integer(count_key(family, config), 0) : 0};
}

Decoder read_decoder(const Description& family, const Configuration& given, const Model& model,
                     const Settings& settings) {
  const char* const activation = family.activation == kernel::Activation::silu ? "silu" : "gelu_pytorch_tanh";
  given.require("hidden_act", {activation});
  given.require("hidden_activation", {activation});
  given.require("pretraining_tp", {1});
  given.require("use_bidirectional_attention", {false});
  given.require("router_jitter_noise", {0});
  require_known(family, given);
  const Configuration config = complete(family, given);
  const Size size = decoder_size(family, given);
  const bool bias = config.boolean("attention_bias", false);
  const std::int64_t scaled_by = config.integer("query_pre_attn_scalar", 0);
  const Ropes rope = ropes(family, config, size.positions);
  Decoder s{.C = model.width,
            .H = model.num_heads,
            .K = key_value_heads(config, size),
            .D = head_width(config, size),
            .I = config.integer("intermediate_size", 1),
            .V = model.vocab_size,
            .input_bias = bias || family.input_bias,
            .output_bias = bias,
            .mlp_bias = config.boolean("mlp_bias", false),
            .tied = config.boolean("tie_word_embeddings", false),
            .epsilon = config.real("rms_norm_eps", 0),
            .dropout = settings.dropout,
            .scale = scaled_by > 0 ? 1 / std::sqrt(static_cast<double>(scaled_by)) : 0,
            .score_cap = config.real("attn_logit_softcapping", 0),
            .logit_cap = config.real("final_logit_softcapping", 0),
            .windows = windows(family, config, model.num_layers),
            .padding = padding(family, given, model),
            .rope = rope.global,
            .local_rope = rope.local,
            .mixture = mixture(family, config, model.num_layers, settings)};
  // The usual scale is left at 0: other scales need other kernels.
  if (scaled_by == s.D) s.scale = 0;
  const auto turned = static_cast<std::int64_t>(static_cast<double>(s.D) * s.rope.fraction);
  if (turned % 2 != 0 || turned == 0)
    config.refuse("partial_rotary_factor", "turns " + to_text(turned) + " numbers of head_dim " + to_text(s.D) +
                                               ": halves are rotated, so it must be even");
  for (const auto& factors : {s.rope.short_factor, s.rope.long_factor}) {
    if (!factors.empty() && static_cast<std::int64_t>(factors.size()) != turned / 2)
      config.refuse("rope_scaling", "has lists of " + to_text(static_cast<std::int64_t>(factors.size())) +
                                        " factors, expected " + to_text(turned / 2) + ", half of what is rotated");
  }
  return s;
}

namespace {

void put_mixture(const Description& family, const Mixture& m, nlohmann::ordered_json& json) {
  json[family.has("num_experts") ? "num_experts" : "num_local_experts"] = m.count;
  json["num_experts_per_tok"] = m.chosen;
  json["output_router_logits"] = m.adds_auxiliary;
  json["router_aux_loss_coef"] = m.auxiliary;
  const auto put = [&](const char* key, const Json& value) {
    if (family.has(key)) json[key] = value;
  };
  put("moe_intermediate_size", m.width);
  put("norm_topk_prob", m.routing == kernel::Routing::normalised);
  put("swiglu_alpha", m.alpha);
  put("swiglu_limit", m.limit);
  put("decoder_sparse_step", 1);
  Json dense = Json::array();
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    if (!m.layers[i]) dense.push_back(i);
  }
  put("mlp_only_layers", dense);
}

}  // namespace

std::string decoder_json(const Description& family, const Decoder& s, const Model& model, const Settings& settings) {
  const bool silu = family.activation == kernel::Activation::silu;
  nlohmann::ordered_json json = {{"architectures", {family.architecture}},
                                 {"model_type", family.type},
                                 {"hidden_size", s.C},
                                 {"intermediate_size", s.I},
                                 {"num_hidden_layers", model.num_layers},
                                 {"num_attention_heads", s.H},
                                 {"num_key_value_heads", s.K},
                                 {"head_dim", s.D},
                                 {silu ? "hidden_act" : "hidden_activation", silu ? "silu" : "gelu_pytorch_tanh"},
                                 {"rms_norm_eps", s.epsilon},
                                 {"vocab_size", s.V},
                                 {"max_position_embeddings", model.positions},
                                 {"rope_parameters", rope_json(family, s)},
                                 {"rope_theta", s.rope.theta}};
  const auto put = [&](const char* key, const Json& value) {
    if (family.has(key)) json[key] = value;
  };
  if (s.rope.fraction != 1) json["partial_rotary_factor"] = s.rope.fraction;
  put("rope_local_base_freq", s.local_rope.theta);
  put("original_max_position_embeddings", s.rope.original_positions > 0 ? s.rope.original_positions : model.positions);
  const bool slides = std::ranges::any_of(s.windows, [](std::int64_t window) { return window > 0; });
  put("sliding_window", slides ? Json(*std::ranges::max_element(s.windows)) : Json());
  put("use_sliding_window", slides);
  Json types = Json::array();
  for (const std::int64_t window : s.windows) types.push_back(window > 0 ? "sliding_attention" : "full_attention");
  put("layer_types", types);
  put("max_window_layers", std::ranges::find_if(s.windows, [](auto window) { return window > 0; }) - s.windows.begin());
  put("query_pre_attn_scalar", s.scale > 0 ? static_cast<std::int64_t>(std::llround(1 / (s.scale * s.scale))) : s.D);
  put("attn_logit_softcapping", or_null(s.score_cap));
  put("final_logit_softcapping", or_null(s.logit_cap));
  put("attention_bias", s.output_bias);
  json["attention_dropout"] = settings.dropout;
  if (s.padding >= 0 || family.padding >= 0) json["pad_token_id"] = s.padding >= 0 ? Json(s.padding) : Json();
  put("mlp_bias", s.mlp_bias);
  if (family.experts) put_mixture(family, s.mixture, json);
  json["initializer_range"] = settings.init_std;
  json["tie_word_embeddings"] = s.tied;
  json["torch_dtype"] = "float32";
  if (const Json scaling = rope_scaling(family, s, model.positions); !scaling.is_null()) json["rope_scaling"] = scaling;
  return json.dump(2) + "\n";
}

Json decoder_meaning(const Description& family, const Configuration& config) {
  Json decides = Json::object();
  const auto take = [&](std::string_view key) {
    if (!key.starts_with("rope_") && !has_word(kOfLoss, key) && !has_word(kSparse, key) &&
        key != "partial_rotary_factor" && key != "original_max_position_embeddings" && !has_word(kWindows, key) &&
        config.has(std::string(key).c_str()))
      decides[std::string(key)] = config.values()[std::string(key)];
  };
  for (const std::string_view key : words_of(kDecide)) take(key);
  for (const std::string_view key : family.keys) take(key);
  if (family.experts) take("num_experts_per_tok");
  const Configuration whole = complete(family, config);
  if (config.has("rope_parameters") || config.has("rope_scaling") || config.has("rope_theta")) {
    const Ropes rope = ropes(family, whole, whole.integer("max_position_embeddings", 1));
    decides["rope_parameters"] = to_json(rope.global);
    if (family.two_ropes) decides["rope_parameters"]["sliding_attention"] = to_json(rope.local);
  }
  if (family.has("mlp_only_layers") && config.has("num_hidden_layers"))
    decides["mlp_only_layers"] = sparse(whole, whole.integer("num_hidden_layers", 1));
  if (family.has("sliding_window") && config.has("num_hidden_layers"))
    decides["sliding_window"] = windows(family, whole, whole.integer("num_hidden_layers", 1));
  return decides;
}

}  // namespace zs::model

// SPDX-License-Identifier: Apache-2.0
// A decoder of tokens: RMS norms, rotary positions, grouped-query attention, a gated feed-forward network, and a head
// that may be tied to the embedding (Touvron et al. 2023). A family is a description of one; names and layouts are
// Hugging Face's (weights are [out, in]).
#pragma once
#include <string_view>
#include <vector>

#include "kernel/kernels.hpp"
#include "model/experts.hpp"
#include "model/model.hpp"
#include "model/rope.hpp"

namespace zs::model {

/// The differences between families. Sizes, and values from config.json, are in a Decoder.
struct Description {
  std::string type, architecture;  ///< of config.json: model_type, architectures
  const char* defaults;            ///< defaults of the family's class for missing keys of config.json: JSON
  /// Keys of config.json in addition to the keys of every decoder; others are errors.
  std::vector<std::string_view> keys;
  std::vector<std::string_view> ignored{};  ///< keys that files of the family have, and its class does not read
  /// A layer's norms: of its input, of its output before the addition, and of queries and keys.
  bool norm_before = true, norm_after = false;
  enum class HeadNorm { none, each, all } head_norm = HeadNorm::none;  ///< all: over the numbers of all heads together
  /// A norm multiplies its rounded result by the weight, or rounds after that, or does so with the weight plus 1.
  kernel::NormScale norm_scale = kernel::NormScale::rounded;
  bool input_bias = false;         ///< of queries, keys and values, whatever attention_bias is
  bool joined = false;             ///< queries, keys and values are one matrix, gate and up another
  bool scaled_embedding = false;   ///< by the root of the width
  std::int64_t window_period = 1;  ///< every such layer has no window; 1: all have one, if there is one
  kernel::Activation activation = kernel::Activation::silu;
  std::int64_t padding = -1;             ///< the padding token of its class; -1: none unless config.json has one
  bool two_ropes = false;                ///< layers with a window have separate rotary positions
  const char* rope = nullptr;            ///< rope_parameters of a config.json that has none: JSON
  bool sinks = false;                    ///< heads have attention sinks
  const ExpertNames* experts = nullptr;  ///< of the families with experts

  bool has(std::string_view key) const;
};

/// A model of a family, from its config.json.
struct Decoder {
  std::int64_t C, H, K, D, I, V;
  bool input_bias, output_bias, mlp_bias, tied;
  double epsilon, dropout;
  double scale, score_cap, logit_cap;  ///< as in kernel::Attending
  std::vector<std::int64_t> windows;   ///< of each layer; 0: unlimited
  std::int64_t padding;                ///< token whose embedding no input trains (padding_idx); -1: none
  Rope rope, local_rope;               ///< local: for layers with a window
  Mixture mixture{};
};

Size decoder_size(const Description& family, const Configuration& config);
/// Throws zs::Error at every unknown key, and at invalid values. `model` has its sizes.
Decoder read_decoder(const Description& family, const Configuration& config, const Model& model,
                     const Settings& settings);
/// The config.json in the form of the family's class of transformers 5; names of earlier versions are added.
std::string decoder_json(const Description& family, const Decoder& decoder, const Model& model,
                         const Settings& settings);
/// See Family::meaning.
nlohmann::json decoder_meaning(const Description& family, const Configuration& config);

/// See Family::build.
void build_decoder(const Description& family, Model& model, const Configuration& config, const Settings& settings,
                   std::int64_t total);

/// The family of a description.
template <const Description& description>
Family decoder() {
  return {description.type,
          [](const Configuration& config, const Settings&) { return decoder_size(description, config); },
          [](Model& model, const Configuration& config, const Settings& settings, std::int64_t total) {
            build_decoder(description, model, config, settings, total);
          },
          [](const Configuration& config) { return decoder_meaning(description, config); }};
}

/// Llama, Qwen, Mistral and similar families.
const std::vector<Family>& decoders();

}  // namespace zs::model

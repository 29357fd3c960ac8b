// SPDX-License-Identifier: Apache-2.0
// The families of decoders that zs knows: their differences from Llama, and their models.
#include <nlohmann/json.hpp>

#include "model/decoder.hpp"

namespace zs::model {
namespace {

using HeadNorm = Description::HeadNorm;
using kernel::NormScale;

/// Llama 1 to 3 (Touvron et al. 2023, Grattafiori et al. 2024), TinyLlama, SmolLM 1 and 2.
const Description kLlama = {
    .type = "llama",
    .architecture = "LlamaForCausalLM",
    .defaults = R"({"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
        "max_position_embeddings": 2048, "vocab_size": 32000, "rms_norm_eps": 1e-6})",
    .keys = {"attention_bias", "mlp_bias", "pretraining_tp"},
    .ignored = {"is_llama_config"}};

/// Qwen 2 and 2.5 (Yang et al. 2024): queries, keys and values have biases.
const Description kQwen2 = {
    .type = "qwen2",
    .architecture = "Qwen2ForCausalLM",
    .defaults = R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "max_position_embeddings": 32768, "vocab_size": 151936, "rms_norm_eps": 1e-6,
        "sliding_window": 4096, "max_window_layers": 28})",
    .keys = {"sliding_window", "use_sliding_window", "max_window_layers", "layer_types"},
    .input_bias = true};

/// Qwen 3 (Yang et al. 2025): each head's queries and keys are normalised.
const Description kQwen3 = {
    .type = "qwen3",
    .architecture = "Qwen3ForCausalLM",
    .defaults = R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "head_dim": 128, "max_position_embeddings": 32768, "vocab_size": 151936,
        "rms_norm_eps": 1e-6, "sliding_window": 4096, "max_window_layers": 28})",
    .keys = {"attention_bias", "sliding_window", "use_sliding_window", "max_window_layers", "layer_types"},
    .head_norm = HeadNorm::each};

/// Mistral (Jiang et al. 2023): a token sees a window of those before it.
const Description kMistral = {
    .type = "mistral",
    .architecture = "MistralForCausalLM",
    .defaults = R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "max_position_embeddings": 131072, "vocab_size": 32000, "rms_norm_eps": 1e-6,
        "sliding_window": 4096})",
    .keys = {"sliding_window"}};

/// OLMo 2 (OLMo team 2025): norms after each layer, and of queries and keys whole.
const Description kOlmo2 = {
    .type = "olmo2",
    .architecture = "Olmo2ForCausalLM",
    .defaults = R"({"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
        "max_position_embeddings": 2048, "vocab_size": 50304, "rms_norm_eps": 1e-5})",
    .keys = {"attention_bias"},
    .norm_before = false,
    .norm_after = true,
    .head_norm = HeadNorm::all,
    .norm_scale = NormScale::wide,
    .padding = 1};

/// Phi 3 and 4 (Abdin et al. 2024): matrices that are multiplied with the same are one.
const Description kPhi3 = {
    .type = "phi3",
    .architecture = "Phi3ForCausalLM",
    .defaults = R"({"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32,
        "max_position_embeddings": 4096, "original_max_position_embeddings": 4096, "vocab_size": 32064,
        "rms_norm_eps": 1e-5})",
    .keys = {"sliding_window", "original_max_position_embeddings"},
    .ignored = {"full_attn_mod", "interpolate_factor"},
    .joined = true,
    .padding = 32000};

/// Gemma 2 (Gemma team 2024): norms before and after, whose weights are 1 less than they multiply with; scores and
/// logits have caps; every other layer has a window.
const Description kGemma2 = {
    .type = "gemma2",
    .architecture = "Gemma2ForCausalLM",
    .defaults = R"({"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192, "vocab_size": 256000,
        "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "query_pre_attn_scalar": 256, "sliding_window": 4096,
        "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0})",
    .keys = {"attention_bias", "hidden_activation", "sliding_window", "layer_types", "query_pre_attn_scalar",
             "attn_logit_softcapping", "final_logit_softcapping", "use_bidirectional_attention"},
    .norm_after = true,
    .norm_scale = NormScale::plus_one,
    .scaled_embedding = true,
    .window_period = 2,
    .activation = kernel::Activation::gelu_tanh,
    .padding = 0};

/// Gemma 3, its models of text (Gemma team 2025): queries and keys are normalised instead of a cap on scores; five of
/// six layers have a window and separate rotary positions.
const Description kGemma3 = {
    .type = "gemma3_text",
    .architecture = "Gemma3ForCausalLM",
    .defaults = R"({"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072, "vocab_size": 262208,
        "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "query_pre_attn_scalar": 256, "sliding_window": 4096,
        "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0})",
    .keys = {"attention_bias", "hidden_activation", "sliding_window", "layer_types", "sliding_window_pattern",
             "query_pre_attn_scalar", "final_logit_softcapping", "use_bidirectional_attention", "rope_local_base_freq"},
    .norm_after = true,
    .head_norm = HeadNorm::each,
    .norm_scale = NormScale::plus_one,
    .scaled_embedding = true,
    .window_period = 6,
    .activation = kernel::Activation::gelu_tanh,
    .padding = 0,
    .two_ropes = true};

constexpr ExpertNames kMixtralNames = {.router = "block_sparse_moe.gate",
                                       .experts = "block_sparse_moe.experts",
                                       .gate = "w1",
                                       .up = "w3",
                                       .down = "w2",
                                       .count = "num_local_experts",
                                       .width = "intermediate_size"};

/// Mixtral (Jiang et al. 2024): Mistral with experts instead of each feed-forward network.
const Description kMixtral = {
    .type = "mixtral",
    .architecture = "MixtralForCausalLM",
    .defaults = R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "max_position_embeddings": 131072, "vocab_size": 32000, "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0, "num_local_experts": 8, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.001})",
    .keys = {"sliding_window", "num_local_experts"},
    .experts = &kMixtralNames};

constexpr ExpertNames kQwen3MoeNames = {.router = "mlp.gate",
                                        .experts = "mlp.experts",
                                        .gate = "gate_proj",
                                        .up = "up_proj",
                                        .down = "down_proj",
                                        .count = "num_experts",
                                        .width = "moe_intermediate_size"};

/// Qwen 3 with experts (Yang et al. 2025), in all layers or in some.
const Description kQwen3Moe = {
    .type = "qwen3_moe",
    .architecture = "Qwen3MoeForCausalLM",
    .defaults = R"({"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24, "num_attention_heads": 32,
        "num_key_value_heads": 4, "max_position_embeddings": 32768, "vocab_size": 151936, "rms_norm_eps": 1e-6,
        "sliding_window": 4096, "moe_intermediate_size": 768, "num_local_experts": 128, "num_experts_per_tok": 8,
        "router_aux_loss_coef": 0.001})",
    .keys = {"attention_bias", "sliding_window", "use_sliding_window", "num_experts", "num_local_experts",
             "moe_intermediate_size", "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers"},
    .ignored = {"max_window_layers"},
    .head_norm = HeadNorm::each,
    .experts = &kQwen3MoeNames};

constexpr ExpertNames kGptOssNames = {.router = "mlp.router",
                                      .experts = "mlp.experts",
                                      .gate = "gate_up_proj",
                                      .up = nullptr,
                                      .down = "down_proj",
                                      .router_bias = true,
                                      .count = "num_local_experts",
                                      .width = "intermediate_size"};

/// gpt-oss (OpenAI 2025): attention with sinks, every other layer with a window; biases everywhere.
const Description kGptOss = {
    .type = "gpt_oss",
    .architecture = "GptOssForCausalLM",
    .defaults = R"({"hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072, "vocab_size": 201088,
        "rms_norm_eps": 1e-5, "sliding_window": 128, "attention_bias": true, "rope_theta": 150000.0,
        "num_local_experts": 128, "num_experts_per_tok": 4, "router_aux_loss_coef": 0.001, "swiglu_alpha": 1.702,
        "swiglu_limit": 7.0})",
    .keys = {"attention_bias", "sliding_window", "layer_types", "num_local_experts", "swiglu_alpha", "swiglu_limit"},
    .ignored = {"experts_per_token", "initial_context_length"},
    .norm_scale = NormScale::wide,
    .window_period = 2,
    .rope = R"({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
        "original_max_position_embeddings": 4096})",
    .sinks = true,
    .experts = &kGptOssNames};

}  // namespace

const std::vector<Family>& decoders() {
  static const std::vector<Family> families = {decoder<kLlama>(),    decoder<kQwen2>(),  decoder<kQwen3>(),
                                               decoder<kMistral>(),  decoder<kOlmo2>(),  decoder<kPhi3>(),
                                               decoder<kGemma2>(),   decoder<kGemma3>(), decoder<kMixtral>(),
                                               decoder<kQwen3Moe>(), decoder<kGptOss>()};
  return families;
}

}  // namespace zs::model

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
    .pads = true};

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
    .pads = true};

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
    .pads = true};

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
    .pads = true,
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
  static const std::vector<Family> all = {
      decoder<kLlama>(
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
               "max_position_embeddings": 131072, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3",
               "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings":
               8192}})"},
           {"Llama-3.2-1B", "meta-llama",
            R"({"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_key_value_heads": 8,
               "head_dim": 64, "vocab_size": 128256, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
               "rope_theta": 500000.0, "tie_word_embeddings": true, "rope_scaling": {"rope_type": "llama3", "factor":
               32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})"},
           {"Llama-3.2-3B", "meta-llama",
            R"({"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
               "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256, "rms_norm_eps": 1e-5,
               "max_position_embeddings": 131072, "rope_theta": 500000.0, "tie_word_embeddings": true, "rope_scaling":
               {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}})"},
           {"SmolLM-135M", "HuggingFaceTB",
            R"({"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
               "num_key_value_heads": 3, "vocab_size": 49152, "rms_norm_eps": 1e-5, "tie_word_embeddings": true})"},
           {"SmolLM2-135M", "HuggingFaceTB",
            R"({"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
               "num_key_value_heads": 3, "vocab_size": 49152, "rms_norm_eps": 1e-5, "max_position_embeddings": 8192,
               "rope_theta": 100000.0, "tie_word_embeddings": true})"},
           {"SmolLM2-360M", "HuggingFaceTB",
            R"({"hidden_size": 960, "intermediate_size": 2560, "num_attention_heads": 15, "num_key_value_heads": 5,
               "vocab_size": 49152, "rms_norm_eps": 1e-5, "max_position_embeddings": 8192, "rope_theta": 100000.0,
               "tie_word_embeddings": true})"},
           {"SmolLM2-1.7B", "HuggingFaceTB",
            R"({"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 32,
               "vocab_size": 49152, "rms_norm_eps": 1e-5, "max_position_embeddings": 8192, "rope_theta": 130000.0,
               "tie_word_embeddings": true})"}}),
      decoder<kQwen2>(
          {{"tiny-qwen2", "zs",
            R"({"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256, "use_sliding_window": true,
               "sliding_window": 8, "max_window_layers": 1})"},
           {"Qwen2-0.5B", "Qwen",
            R"({"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
               "num_key_value_heads": 2, "max_position_embeddings": 131072, "rope_theta": 1000000.0,
               "tie_word_embeddings": true})"},
           {"Qwen2.5-0.5B", "Qwen",
            R"({"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
               "num_key_value_heads": 2, "rope_theta": 1000000.0, "tie_word_embeddings": true})"},
           {"Qwen2.5-1.5B", "Qwen",
            R"({"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
               "num_key_value_heads": 2, "max_position_embeddings": 131072, "rope_theta": 1000000.0,
               "tie_word_embeddings": true})"},
           {"Qwen2.5-3B", "Qwen",
            R"({"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
               "num_key_value_heads": 2, "rope_theta": 1000000.0, "tie_word_embeddings": true})"},
           {"Qwen2.5-7B", "Qwen",
            R"({"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
               "num_key_value_heads": 4, "max_position_embeddings": 131072, "rope_theta": 1000000.0, "vocab_size":
               152064})"}}),
      decoder<kQwen3>(
          {{"tiny-qwen3", "zs",
            R"({"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256, "head_dim": 48})"},
           {"Qwen3-0.6B", "Qwen",
            R"({"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
               "num_key_value_heads": 8, "max_position_embeddings": 40960, "rope_theta": 1000000.0,
               "tie_word_embeddings": true})"},
           {"Qwen3-1.7B", "Qwen",
            R"({"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16,
               "num_key_value_heads": 8, "max_position_embeddings": 40960, "rope_theta": 1000000.0,
               "tie_word_embeddings": true})"},
           {"Qwen3-4B", "Qwen",
            R"({"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_key_value_heads": 8,
               "max_position_embeddings": 40960, "rope_theta": 1000000.0, "tie_word_embeddings": true})"},
           {"Qwen3-8B", "Qwen",
            R"({"intermediate_size": 12288, "num_hidden_layers": 36, "num_key_value_heads": 8,
               "max_position_embeddings": 40960, "rope_theta": 1000000.0})"}}),
      decoder<kMistral>(
          {{"tiny-mistral", "zs",
            R"({"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256, "sliding_window": 8})"},
           {"Mistral-7B-v0.1", "mistralai", R"({"max_position_embeddings": 32768, "rms_norm_eps": 1e-5})"},
           {"Mistral-7B-v0.3", "mistralai",
            R"({"max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "vocab_size": 32768,
               "sliding_window": null})"}}),
      decoder<kOlmo2>(
          {{"tiny-olmo2", "zs",
            R"({"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256})"},
           {"OLMo-2-0425-1B", "allenai",
            R"({"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 16,
               "max_position_embeddings": 4096, "rope_theta": 500000.0, "rms_norm_eps": 1e-6, "vocab_size": 100352})"},
           {"OLMo-2-1124-7B", "allenai",
            R"({"max_position_embeddings": 4096, "rope_theta": 500000.0, "rms_norm_eps": 1e-6, "vocab_size": 100352})"}}),
      decoder<kPhi3>(
          {{"tiny-phi3", "zs",
            R"({"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256, "sliding_window": 8})"},
           {"Phi-3-mini-4k-instruct", "microsoft", R"({"sliding_window": 2047})"},
           {"phi-4", "microsoft",
            R"({"hidden_size": 5120, "intermediate_size": 17920, "num_hidden_layers": 40, "num_attention_heads": 40,
               "num_key_value_heads": 10, "max_position_embeddings": 16384, "original_max_position_embeddings": 16384,
               "rope_theta": 250000.0, "vocab_size": 100352})"}}),
      decoder<kGemma2>(
          {{"tiny-gemma2", "zs",
            R"({"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256, "head_dim": 48,
               "query_pre_attn_scalar": 40, "sliding_window": 8})"},
           {"gemma-2-2b", "google", R"({})"},
           {"gemma-2-9b", "google",
            R"({"hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42, "num_attention_heads": 16,
               "num_key_value_heads": 8})"}}),
      decoder<kGemma3>(
          {{"tiny-gemma3", "zs",
            R"({"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256, "head_dim": 48,
               "query_pre_attn_scalar": 40, "sliding_window": 8, "sliding_window_pattern": 2})"},
           {"gemma-3-270m", "google",
            R"({"hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 4,
               "num_key_value_heads": 1, "max_position_embeddings": 32768, "vocab_size": 262144, "sliding_window": 512})"},
           {"gemma-3-1b-pt", "google",
            R"({"hidden_size": 1152, "intermediate_size": 6912, "num_attention_heads": 4, "num_key_value_heads": 1,
               "max_position_embeddings": 32768, "vocab_size": 262144, "sliding_window": 512})"}}),
      decoder<kMixtral>(
          {{"tiny-mixtral", "zs",
            R"({"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256, "num_local_experts": 4,
               "output_router_logits": true})"},
           {"Mixtral-8x7B-v0.1", "mistralai", R"({"max_position_embeddings": 32768, "router_aux_loss_coef": 0.02})"},
           {"Mixtral-8x22B-v0.1", "mistralai",
            R"({"hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 56, "num_attention_heads": 48,
               "max_position_embeddings": 65536})"}}),
      decoder<kQwen3Moe>(
          {{"tiny-qwen3-moe", "zs",
            R"({"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256, "head_dim": 48,
               "moe_intermediate_size": 64, "num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": true,
               "mlp_only_layers": [0], "output_router_logits": true})"},
           {"Qwen3-30B-A3B", "Qwen",
            R"({"num_hidden_layers": 48, "head_dim": 128, "max_position_embeddings": 40960, "rope_theta": 1000000.0,
               "norm_topk_prob": true})"},
           {"Qwen3-235B-A22B", "Qwen",
            R"({"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 94, "num_attention_heads": 64,
               "head_dim": 128, "max_position_embeddings": 40960, "rope_theta": 1000000.0,
               "moe_intermediate_size": 1536, "norm_topk_prob": true})"}}),
      decoder<kGptOss>(
          {{"tiny-gpt-oss", "zs",
            R"({"hidden_size": 128, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 256, "max_position_embeddings": 256,
               "sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2})"},
           {"gpt-oss-20b", "openai",
            R"({"num_hidden_layers": 24, "num_local_experts": 32, "router_aux_loss_coef": 0.9})"},
           {"gpt-oss-120b", "openai", R"({"router_aux_loss_coef": 0.9})"}})};
  return all;
}

}  // namespace zs::model

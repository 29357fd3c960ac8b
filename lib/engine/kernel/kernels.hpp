// SPDX-License-Identifier: Apache-2.0
// The expensive layers of transformers, in two forms: by LibTorch's operations, and fused (--compile). Both are
// differentiable and deterministic; they agree up to rounding. Shapes: B samples, T tokens, N = B*T, C width, E = 3*C,
// H heads, I inner and O outer width, V vocabulary; D numbers of a head, K heads of keys and values, F = K*D, R = D/2.
#pragma once
#include <cstdint>
#include <span>

#include "unit/tensor.hpp"

namespace zs::kernel {

/// x unchanged, and normalised: both from one call, so that backward adds the two gradients of x in one pass.
struct Normed {
  at::Tensor x, y;
};

/// How the weight of an RMS norm multiplies: after the result was rounded to the type of x; before that, in float32;
/// so, greater by 1.
enum class NormScale { rounded, wide, plus_one };

/// The weight of an RMS norm; undefined if there is no norm.
struct NormWeight {
  NormWeight() = default;
  NormWeight(at::Tensor weight_C, NormScale how = NormScale::rounded) : weight(std::move(weight_C)), scale(how) {}
  at::Tensor weight{};
  NormScale scale = NormScale::rounded;

  bool defined() const { return weight.defined(); }
  /// The factor of the norm: float32 unless the scale is `rounded`.
  at::Tensor factor() const;
};

/// The term that is added to a product (Hu et al. 2022): scale x a^T b^T, with R numbers in between; undefined if there
/// is none.
struct Adapter {
  at::Tensor a_RI{}, b_OR{};
  double scale = 0;

  bool defined() const { return a_RI.defined(); }
};

/// A product with weight_OI; bias_O is undefined if there is none.
struct Projection {
  at::Tensor weight_OI, bias_O{};
  Adapter adapter{};
};

/// Parameters of causal attention with H heads, with dropout of the weights.
struct Attending {
  std::int64_t heads;
  double dropout = 0;
  std::uint64_t key = 0;
  double scale = 0;         ///< of the scores; 0: 1 / sqrt(D)
  double cap = 0;           ///< a score s becomes cap tanh(s / cap); 0: no cap
  std::int64_t window = 0;  ///< number of keys visible to a query, including its own; 0: all
  /// First tokens of documents that do not see each other, as in unit::Documents; none: each sample is one.
  std::span<const std::int64_t> documents{};
  /// An additional score of each head, without a value (attention sink, Xiao et al. 2024); undefined: none. Only
  /// LibTorch's operations take it.
  at::Tensor sinks_H{};
};

/// Attention of a decoder: norm, queries, keys, values, rotation, attention of the heads, output. Norms that are
/// undefined are left out: before it, of its output, and of queries and keys (of each head, or of all heads
/// together: the size of the weight decides).
struct AttentionLayer {
  NormWeight norm_C;
  double epsilon;
  Projection q, k, v, o;
  at::Tensor cos_TR,
      sin_TR;  ///< R < D/2: the first 2R numbers of a head are turned. Of documents [N, R], token by token
  Attending attending;
  NormWeight q_norm{}, k_norm{}, post_norm_C{};
};

/// The activation of the gate.
enum class Activation { silu, gelu_tanh };

/// Feed-forward network of a decoder: norm, gate and up, SwiGLU or GeGLU, down, norm; norms as in attention.
struct GatedLayer {
  NormWeight norm_C;
  double epsilon;
  Projection gate, up, down;
  Activation activation = Activation::silu;
  NormWeight post_norm_C{};
  bool last = false;  ///< of its unit: what it gives is what the unit does, which a second forward need not make
};

struct ExpertParts;  // gated_experts.hpp

struct Kernels {
  /// Layer norm over the last dimension.
  Normed (*norm)(const at::Tensor& x_BTC, const at::Tensor& weight_C, const at::Tensor& bias_C, double epsilon);
  /// x_BTI times weight_IO plus bias_O: [B, T, O].
  at::Tensor (*linear)(const at::Tensor& x_BTI, const at::Tensor& weight_IO, const at::Tensor& bias_O);
  /// GELU by tanh (Hendrycks & Gimpel 2016) of linear().
  at::Tensor (*linear_gelu)(const at::Tensor& x_BTI, const at::Tensor& weight_IO, const at::Tensor& bias_O);
  /// residual_BTO plus linear().
  at::Tensor (*linear_add)(const at::Tensor& x_BTI, const at::Tensor& weight_IO, const at::Tensor& bias_O,
                           const at::Tensor& residual_BTO);
  /// Causal self-attention of H heads over the queries, keys and values of qkv_BTE, with dropout of the weights: [B, T,
  /// C].
  at::Tensor (*attention)(const at::Tensor& qkv_BTE, std::int64_t heads, double dropout, std::uint64_t key);
  /// Rows of weight_VC: [B, T, C].
  at::Tensor (*embedding)(const at::Tensor& weight_VC, const at::Tensor& tokens_BT);
  /// Mean cross-entropy of the next token under the logits x_NC times the transpose of weight_VC, capped as Attending
  /// says: a scalar.
  at::Tensor (*loss)(const at::Tensor& x_NC, const at::Tensor& weight_VC, const at::Tensor& targets_N, double cap);

  /// x times weight over its root mean square, over the last dimension (Zhang & Sennrich 2019).
  Normed (*rms_norm)(const at::Tensor& x_BTC, const NormWeight& weight_C, double epsilon);
  /// x_BTI times the transpose of weight_OI, plus bias_O where that is defined: [B, T, O].
  at::Tensor (*project)(const at::Tensor& x_BTI, const at::Tensor& weight_OI, const at::Tensor& bias_O);
  /// SiLU of the gate, times `up` (Shazeer 2020).
  at::Tensor (*swiglu)(const at::Tensor& gate_BTI, const at::Tensor& up_BTI);
  /// GELU by tanh of the gate, times `up`.
  at::Tensor (*geglu)(const at::Tensor& gate_BTI, const at::Tensor& up_BTI);
  /// Heads of D numbers turned by their position: number r of the first half with number r of the second.
  at::Tensor (*rotate)(const at::Tensor& x_BTE, const at::Tensor& cos_TR, const at::Tensor& sin_TR);
  /// Self-attention of H heads, each H/K of which share keys and values: [B, T, H*D].
  at::Tensor (*grouped_attention)(const at::Tensor& q_BTE, const at::Tensor& k_BTF, const at::Tensor& v_BTF,
                                  const Attending& how);
  /// Self-attention of H heads in which every token sees every token, with dropout of the weights: [B, T, H*D].
  at::Tensor (*bidirectional_attention)(const at::Tensor& q_BTE, const at::Tensor& k_BTE, const at::Tensor& v_BTE,
                                        std::int64_t heads, double dropout, std::uint64_t key);
  /// x plus the layer of it.
  at::Tensor (*attention_layer)(const at::Tensor& x_BTC, const AttentionLayer& layer);
  at::Tensor (*gated_layer)(const at::Tensor& x_BTC, const GatedLayer& layer);
  /// Whether grouped_attention() itself keeps documents apart, for queries and settings like these; null: never.
  bool (*takes_documents)(const at::Tensor& q_BTE, const Attending& how) = nullptr;
  const ExpertParts* experts = nullptr;  ///< of a network of experts; null: LibTorch's operations
};

/// The inputs of a layer's attention: x unchanged, and its queries, keys and values, normalised and rotated.
struct AttentionInputs {
  at::Tensor x_BTC, q_BTE, k_BTF, v_BTF;
};
AttentionInputs attention_inputs(const Kernels& by, const at::Tensor& x_BTC, const AttentionLayer& layer);
/// Attention of heads, of whole samples or within their documents.
at::Tensor attend(const Kernels& by, const at::Tensor& q_BTE, const at::Tensor& k_BTF, const at::Tensor& v_BTF,
                  const Attending& how);
/// x plus the output of the layer whose attention came to `attended`.
at::Tensor attention_output(const Kernels& by, const at::Tensor& x_BTC, const at::Tensor& attended_BTE,
                            const AttentionLayer& layer);
/// All three, and a feed-forward network, as compositions of the kernels of `by`.
at::Tensor attention_layer(const Kernels& by, const at::Tensor& x_BTC, const AttentionLayer& layer);
at::Tensor gated_layer(const Kernels& by, const at::Tensor& x_BTC, const GatedLayer& layer);

/// The product of x_BTI and what its adapter, where there is one, adds to that: [B, T, O].
at::Tensor adapted(const Kernels& by, const at::Tensor& x_BTI, const at::Tensor& product_BTO, const Adapter& adapter);

/// Self-attention within each document: with one call of kernels that take documents, or one document after another. On
/// a GPU the latter calls are LibTorch's, since a fused kernel would be chosen for each length.
at::Tensor attention_of_documents(const Kernels& by, const at::Tensor& qkv_BTE, const Attending& how);
at::Tensor attention_of_documents(const Kernels& by, const at::Tensor& q_BTE, const at::Tensor& k_BTF,
                                  const at::Tensor& v_BTF, const Attending& how);

/// LibTorch's operations, on any device.
const Kernels& plain();

/// Kernels with fewer passes over memory. A parameter's gradient is added directly into its .grad if that is set
/// beforehand (a leaf of the engine's flat buffer), else returned to autograd.
const Kernels& fused();

/// Whether float32 products on a GPU may use TF32: 10 bits of mantissa. For the whole process.
void allow_tf32(bool allow);

/// How factors of fused products on a GPU are rounded to 8 bits, except in the head and in attention: not at all; with
/// one scale for each matrix; with one for each of its rows. See cuda_product.hpp. For the whole process.
enum class Scales { none, tensorwise, rowwise };
void use_float8(Scales scales);

/// The kernels of a device, plain or fused. A GPU's fused ones are in its library: cuBLASLt, cuDNN and zs's kernels, in
/// float32 (or TF32) and bfloat16.
const Kernels& chosen(bool fused, at::DeviceType device);

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
// Parts of a decoder's attention as nodes of autograd on a GPU, for layers that cuda_llama.cpp does not compute as one:
// rotation by zs's kernel, attention within whole samples by cuDNN, within documents, windows and of other scales by
// LibTorch's FlashAttention 2 over sequences of any lengths (Dao 2023). Shapes as in kernels.hpp; N = B T tokens, S
// sequences.
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernel/attention.hpp"
#include "kernel/cuda_layers.hpp"
#include "kernel/cuda_llama.hpp"
#include "unit/kept.hpp"

namespace zs::kernel::cuda {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

Tensor turned(const Tensor& x_BTE, const Tensor& cos_TR, const Tensor& sin_TR, bool back) {
  const std::int64_t N = x_BTE.size(0) * x_BTE.size(1), E = x_BTE.size(2), R = cos_TR.size(1);
  const Tensor made_BTE = x_BTE.clone(at::MemoryFormat::Contiguous);
  with_type(made_BTE, [&](auto type) {
    using Number = decltype(type);
    rotate(data<Number>(made_BTE), E, E / (2 * R), 2 * R, data<float>(cos_TR), data<float>(sin_TR), N, x_BTE.size(1), R,
           back, stream());
  });
  return made_BTE;
}

struct Rotation : torch::autograd::Function<Rotation> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_BTE, const Tensor& cos_TR, const Tensor& sin_TR) {
    ctx->save_for_backward({cos_TR, sin_TR});
    return turned(x_BTE, cos_TR, sin_TR, /*back=*/false);
  }
  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    return {turned(gradients[0], saved[0], saved[1], /*back=*/true), Tensor(), Tensor()};
  }
};

struct AttentionOfSamples : torch::autograd::Function<AttentionOfSamples> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q_BTE, const Tensor& k_BTF, const Tensor& v_BTF,
                        const Heads& heads) {
    const QueriesKeysValues qkv{q_BTE.contiguous(), k_BTF.contiguous(), v_BTF.contiguous()};
    const Attended attended = attention_forward(qkv, heads);
    ctx->save_for_backward({qkv.q_BTE, qkv.k_BTF, qkv.v_BTF, attended.out_BTC, attended.stats_BHT1});
    ctx->saved_data["heads"] = std::vector<double>{static_cast<double>(heads.H), static_cast<double>(heads.K),
                                                   heads.scale, static_cast<double>(heads.window), heads.cap};
    return attended.out_BTC;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const std::vector<double> how = ctx->saved_data["heads"].toDoubleVector();
    const auto whole = [&](std::size_t i) { return static_cast<std::int64_t>(how[i]); };
    const Heads heads{whole(0), whole(1), how[2], whole(3), {}, how[4]};
    const QueriesKeysValues d =
        attention_backward({saved[0], saved[1], saved[2]}, {saved[3], saved[4]}, gradients[0].contiguous(), heads);
    return {d.q_BTE, d.k_BTF, d.v_BTF, Tensor()};
  }
};

struct AttentionOfSequences : torch::autograd::Function<AttentionOfSequences> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q_BTE, const Tensor& k_BTF, const Tensor& v_BTF,
                        const Attending& how) {
    const std::int64_t D = q_BTE.size(2) / how.heads;
    const auto heads = [&](const Tensor& x) { return x.reshape({-1, x.size(2) / D, D}); };
    // Where documents, or samples, begin among the tokens, and where the last one ends: int32, on the GPU.
    const std::int64_t T = q_BTE.size(1), N = q_BTE.size(0) * T;
    std::vector<std::int64_t> begins(how.documents.begin(), how.documents.end());
    for (std::int64_t begin = 0; how.documents.empty() && begin < N; begin += T) begins.push_back(begin);
    begins.push_back(N);
    std::int64_t longest = 0;
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) longest = std::max(longest, begins[i + 1] - begins[i]);
    const Tensor ends_S1 = at::tensor(begins, at::kInt).to(q_BTE.device());
    const std::optional<double> scale = how.scale > 0 ? std::optional(how.scale) : std::nullopt;
    const std::optional<std::int64_t> left = how.window > 0 ? std::optional(how.window - 1) : std::nullopt;
    const Tensor q = heads(q_BTE), k = heads(k_BTF), v = heads(v_BTF);
    const unit::Results made = unit::kept([&] {
      const auto [out, stats, state, unused, mask] =
          at::_flash_attention_forward(q, k, v, ends_S1, ends_S1, longest, longest, /*dropout_p=*/0,
                                       /*is_causal=*/true, /*return_debug_mask=*/false, scale, left);
      return unit::Results{out, stats, state, unused};
    });
    ctx->save_for_backward({q, k, v, made[0], made[1], made[2], made[3], ends_S1});
    ctx->saved_data["longest"] = longest;
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["left"] = left;
    ctx->saved_data["T"] = T;
    return made[0].view(q_BTE.sizes());
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const std::int64_t longest = ctx->saved_data["longest"].toInt(), T = ctx->saved_data["T"].toInt();
    const auto [dq, dk, dv] = at::_flash_attention_backward(
        gradients[0].reshape(saved[3].sizes()).contiguous(), saved[0], saved[1], saved[2], saved[3], saved[4], saved[7],
        saved[7], longest, longest, /*dropout_p=*/0, /*is_causal=*/true, saved[5], saved[6],
        ctx->saved_data["scale"].toOptional<double>(), ctx->saved_data["left"].toOptional<std::int64_t>());
    const auto whole = [&](const Tensor& x) { return x.reshape({-1, T, x.size(1) * x.size(2)}); };
    return {whole(dq), whole(dk), whole(dv), Tensor()};
  }
};

}  // namespace

Tensor rotate_heads(const Tensor& x_BTE, const Tensor& cos_TR, const Tensor& sin_TR) {
  if (x_BTE.scalar_type() == at::kHalf || !rotate_fits(cos_TR.size(1), x_BTE.element_size()))
    return plain().rotate(x_BTE, cos_TR, sin_TR);
  return Rotation::apply(x_BTE, cos_TR, sin_TR);
}

bool takes_sequences(const Tensor& q_BTE, const Attending& how) {
  constexpr std::int64_t kWidest = 256;
  const std::int64_t D = q_BTE.size(2) / how.heads;
  return (q_BTE.scalar_type() == at::kBFloat16 || q_BTE.scalar_type() == at::kHalf) && D % 8 == 0 && D <= kWidest &&
         how.dropout == 0 && how.cap == 0 && !how.sinks_H.defined();
}

Tensor attention_of_sequences(const Tensor& q_BTE, const Tensor& k_BTF, const Tensor& v_BTF, const Attending& how) {
  const Heads heads{how.heads, how.heads * k_BTF.size(2) / q_BTE.size(2), how.scale, how.window, {}, how.cap};
  const bool narrow = q_BTE.scalar_type() == at::kBFloat16 || q_BTE.scalar_type() == at::kHalf;
  if (narrow && how.documents.empty() && how.dropout == 0 && !how.sinks_H.defined() &&
      attention_fits(AttentionShape::of(q_BTE, heads, heads.H), heads))
    return AttentionOfSamples::apply(q_BTE, k_BTF, v_BTF, heads);
  if (!takes_sequences(q_BTE, how)) return plain().grouped_attention(q_BTE, k_BTF, v_BTF, how);
  return AttentionOfSequences::apply(q_BTE, k_BTF, v_BTF, how);
}

}  // namespace zs::kernel::cuda

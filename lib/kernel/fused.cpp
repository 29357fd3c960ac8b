// SPDX-License-Identifier: Apache-2.0
// Each layer as one node of autograd. Shapes as in kernels.hpp; D = C/H, S keys seen by a block of queries.
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel/gradient.hpp"
#include "kernel/kernels.hpp"
#include "kernel/product.hpp"
#include "kernel/vector.hpp"
#include "unit/random.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;


struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
    ctx->save_for_backward({x_BTI, weight_IO, bias_O});
    const Tensor x_NI = x_BTI.reshape({-1, weight_IO.size(0)});
    const Tensor y_NO = at::empty({x_NI.size(0), weight_IO.size(1)}, x_NI.options());
    y_NO.copy_(bias_O);
    multiply(y_NO, x_NI, weight_IO, 1);
    return y_NO.view({x_BTI.size(0), x_BTI.size(1), weight_IO.size(1)});
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &x_BTI = saved[0], &weight_IO = saved[1];
    const Tensor dy_NO = gradients[0].reshape({-1, weight_IO.size(1)}), x_NI = x_BTI.reshape({-1, weight_IO.size(0)});
    Gradient weight(weight_IO), bias(saved[2]);
    multiply(weight.sum(), x_NI.t(), dy_NO, 1);
    bias.sum().add_(dy_NO.sum(0));
    const Tensor dx_NI = at::empty_like(x_NI);
    multiply(dx_NI, dy_NO, weight_IO.t(), 0);
    return {dx_NI.view(x_BTI.sizes()), weight.returned(), bias.returned()};
  }
};

struct Gelu : torch::autograd::Function<Gelu> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    RECORD_USER_SCOPE("zs::gelu");
    ctx->save_for_backward({x});
    Tensor y = at::empty_like(x);
    gelu(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Tensor x = ctx->get_saved_variables()[0], dy = gradients[0].contiguous();
    Tensor dx = at::empty_like(x);
    gelu_backward(x.data_ptr<float>(), dy.data_ptr<float>(), dx.data_ptr<float>(), x.numel());
    return {dx};
  }
};

/// Queries [begin, end) of one head see the keys [0, end). Blocks of queries leave out most of what causality masks.
constexpr std::int64_t kQueries = 64;

/// Queries, keys and values (or gradients by them) of one head: views [T, D] of qkv_BTE.
struct Head {
  Head(const Tensor& qkv_BTE, std::int64_t sample, std::int64_t head, std::int64_t heads) {
    const std::int64_t C = qkv_BTE.size(2) / 3, D = C / heads;
    const Tensor qkv_TE = qkv_BTE.select(0, sample);
    q_TD = qkv_TE.narrow(1, head * D, D);
    k_TD = qkv_TE.narrow(1, C + head * D, D);
    v_TD = qkv_TE.narrow(1, 2 * C + head * D, D);
  }
  Tensor q_TD, k_TD, v_TD;
};

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& qkv_BTE, std::int64_t heads, double dropout,
                        std::int64_t key) {
    RECORD_USER_SCOPE("zs::attention");
    const std::int64_t B = qkv_BTE.size(0), T = qkv_BTE.size(1), C = qkv_BTE.size(2) / 3, D = C / heads;
    const double scale = 1 / std::sqrt(static_cast<double>(D));
    Tensor out_BTC = at::empty({B, T, C}, qkv_BTE.options()),
           weights_BHTT = at::empty({B, heads, T, T}, qkv_BTE.options());
    Tensor mask_BHTT;
    if (dropout > 0) mask_BHTT = unit::dropout_mask(weights_BHTT, dropout, static_cast<std::uint64_t>(key));
    for (std::int64_t i = 0; i < B * heads; ++i) {
      const std::int64_t b = i / heads, h = i % heads;
      const Head head(qkv_BTE, b, h, heads);
      const Tensor out_TD = out_BTC.select(0, b).narrow(1, h * D, D);
      const Tensor weights_TT = weights_BHTT.select(0, b).select(0, h);
      for (std::int64_t begin = 0; begin < T; begin += kQueries) {
        const std::int64_t end = std::min(T, begin + kQueries);
        const Tensor seen_QS = weights_TT.narrow(0, begin, end - begin).narrow(1, 0, end);
        multiply(seen_QS, head.q_TD.narrow(0, begin, end - begin), head.k_TD.narrow(0, 0, end).t(), 0, scale);
        for (std::int64_t query = begin; query < end; ++query) {
          float* const row = weights_TT.data_ptr<float>() + query * T;
          softmax(row, query + 1);
          std::fill(row + query + 1, row + end, 0.0F);
        }
        const Tensor used_QS = dropped(seen_QS, mask_BHTT, b, h, begin, end);
        multiply(out_TD.narrow(0, begin, end - begin), used_QS, head.v_TD.narrow(0, 0, end), 0);
      }
    }
    ctx->save_for_backward({qkv_BTE, weights_BHTT, mask_BHTT});
    ctx->saved_data["heads"] = heads;
    return out_BTC;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &qkv_BTE = saved[0], &weights_BHTT = saved[1], &mask_BHTT = saved[2];
    const std::int64_t heads = ctx->saved_data["heads"].toInt();
    const std::int64_t B = qkv_BTE.size(0), T = qkv_BTE.size(1), D = qkv_BTE.size(2) / 3 / heads;
    const double scale = 1 / std::sqrt(static_cast<double>(D));
    Tensor dqkv_BTE = at::empty_like(qkv_BTE);
    const Tensor scratch = at::empty({std::min(kQueries, T) * T}, qkv_BTE.options());
    for (std::int64_t i = 0; i < B * heads; ++i) {
      const std::int64_t b = i / heads, h = i % heads;
      const Head head(qkv_BTE, b, h, heads), d(dqkv_BTE, b, h, heads);
      const Tensor dout_TD = gradients[0].select(0, b).narrow(1, h * D, D);
      const Tensor weights_TT = weights_BHTT.select(0, b).select(0, h);
      // The last block sees every key: it sets what the others add to.
      for (std::int64_t begin = (T - 1) / kQueries * kQueries; begin >= 0; begin -= kQueries) {
        const std::int64_t end = std::min(T, begin + kQueries), count = end - begin;
        const double beta = end == T ? 0 : 1;
        const Tensor seen_QS = weights_TT.narrow(0, begin, count).narrow(1, 0, end),
                     dout_QD = dout_TD.narrow(0, begin, count);
        multiply(d.v_TD.narrow(0, 0, end), dropped(seen_QS, mask_BHTT, b, h, begin, end).t(), dout_QD, beta);
        Tensor dseen_QS = scratch.narrow(0, 0, count * end).view({count, end});
        multiply(dseen_QS, dout_QD, head.v_TD.narrow(0, 0, end).t(), 0);
        if (mask_BHTT.defined()) dseen_QS.mul_(mask_of(mask_BHTT, b, h, begin, end));
        for (std::int64_t query = begin; query < end; ++query)
          softmax_backward(weights_TT.data_ptr<float>() + query * T, dseen_QS.data_ptr<float>() + (query - begin) * end,
                           end);
        multiply(d.q_TD.narrow(0, begin, count), dseen_QS, head.k_TD.narrow(0, 0, end), 0, scale);
        multiply(d.k_TD.narrow(0, 0, end), dseen_QS.t(), head.q_TD.narrow(0, begin, count), beta, scale);
      }
    }
    return {dqkv_BTE, Tensor(), Tensor(), Tensor()};
  }

 private:
  static Tensor mask_of(const Tensor& mask_BHTT, std::int64_t b, std::int64_t h, std::int64_t begin, std::int64_t end) {
    return mask_BHTT.select(0, b).select(0, h).narrow(0, begin, end - begin).narrow(1, 0, end);
  }
  static Tensor dropped(const Tensor& seen_QS, const Tensor& mask_BHTT, std::int64_t b, std::int64_t h,
                        std::int64_t begin, std::int64_t end) {
    return mask_BHTT.defined() ? seen_QS * mask_of(mask_BHTT, b, h, begin, end) : seen_QS;
  }
};

struct Embedding : torch::autograd::Function<Embedding> {
  static Tensor forward(AutogradContext* ctx, const Tensor& weight_VC, const Tensor& tokens_BT) {
    ctx->save_for_backward({weight_VC, tokens_BT});
    return at::embedding(weight_VC, tokens_BT);
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &weight_VC = saved[0], tokens_N = saved[1].reshape({-1}).contiguous();
    const Tensor dy_NC = gradients[0].reshape({-1, weight_VC.size(1)});
    // The rows of one token are added up first, as a dense gradient would be: then what else arrives adds to their sum.
    const auto* const tokens = tokens_N.data_ptr<std::int64_t>();
    std::vector<std::int64_t> order(static_cast<std::size_t>(tokens_N.numel()));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return tokens[a] < tokens[b]; });
    Gradient weight(weight_VC);
    for (std::size_t i = 0; i < order.size();) {
      const std::int64_t token = tokens[order[i]];
      Tensor row_C = dy_NC.select(0, order[i]);
      for (++i; i < order.size() && tokens[order[i]] == token; ++i) row_C = row_C + dy_NC.select(0, order[i]);
      weight.sum().select(0, token).add_(row_C);
    }
    return {weight.returned(), Tensor()};
  }
};

/// The logits are made for C rows at a time, and become their own gradient at once. Where there are more rows, that
/// gradient is used up in the forward pass: what waits for backward is as large as the weight, however many rows.
struct Loss : torch::autograd::Function<Loss> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_NC, const Tensor& weight_VC, const Tensor& targets_N,
                        bool differentiated) {
    RECORD_USER_SCOPE("zs::loss");
    const std::int64_t N = x_NC.size(0), C = x_NC.size(1), V = weight_VC.size(0), rows = std::min(N, C);
    const auto* const targets = targets_N.data_ptr<std::int64_t>();
    const Tensor chunk = at::empty({rows, V}, x_NC.options());
    Tensor dx_NC, dweight_VC;
    if (differentiated && rows < N) {
      dx_NC = at::empty_like(x_NC);
      dweight_VC = at::empty_like(weight_VC);
    }
    double sum = 0;
    for (std::int64_t begin = 0; begin < N; begin += rows) {
      const std::int64_t count = std::min(rows, N - begin);
      const Tensor logits_RV = chunk.narrow(0, 0, count), x_RC = x_NC.narrow(0, begin, count);
      multiply(logits_RV, x_RC, weight_VC.t(), 0);
      for (std::int64_t i = 0; i < count; ++i)
        sum += cross_entropy(logits_RV.data_ptr<float>() + i * V, V, targets[begin + i], 1.0F / static_cast<float>(N),
                             differentiated);
      if (!dx_NC.defined()) continue;
      multiply(dx_NC.narrow(0, begin, count), logits_RV, weight_VC, 0);
      multiply(dweight_VC, logits_RV.t(), x_RC, begin == 0 ? 0 : 1);
    }
    ctx->save_for_backward({x_NC, weight_VC});
    if (differentiated && !dx_NC.defined()) ctx->saved_data["dlogits"] = chunk;
    ctx->saved_data["dx"] = dx_NC;
    ctx->saved_data["dweight"] = dweight_VC;
    return at::full({}, sum / static_cast<double>(N), x_NC.options());
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &x_NC = saved[0], &weight_VC = saved[1];
    const double scale = gradients[0].item<float>();
    Gradient weight(weight_VC);
    if (const Tensor dx_NC = ctx->saved_data["dx"].toTensor(); dx_NC.defined()) {
      weight.sum().add_(ctx->saved_data["dweight"].toTensor(), scale);
      return {dx_NC * scale, weight.returned(), Tensor(), Tensor()};
    }
    const Tensor dlogits_NV = ctx->saved_data["dlogits"].toTensor(), dx_NC = at::empty_like(x_NC);
    multiply(weight.sum(), dlogits_NV.t(), x_NC, 1, scale);
    multiply(dx_NC, dlogits_NV, weight_VC, 0, scale);
    return {dx_NC, weight.returned(), Tensor(), Tensor()};
  }
};

}  // namespace

const Kernels& fused() {
  static const Kernels kernels = {
      plain().norm,
      [](const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
        return Linear::apply(x_BTI, weight_IO, bias_O);
      },
      [](const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
        return Gelu::apply(Linear::apply(x_BTI, weight_IO, bias_O));
      },
      [](const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O, const Tensor& residual_BTO) {
        return residual_BTO + Linear::apply(x_BTI, weight_IO, bias_O);
      },
      [](const Tensor& qkv_BTE, std::int64_t heads, double dropout, std::uint64_t key) {
        return Attention::apply(qkv_BTE, heads, dropout, static_cast<std::int64_t>(key));
      },
      [](const Tensor& weight_VC, const Tensor& tokens_BT) { return Embedding::apply(weight_VC, tokens_BT); },
      [](const Tensor& x_NC, const Tensor& weight_VC, const Tensor& targets_N) {
        const bool differentiated = at::GradMode::is_enabled() && (x_NC.requires_grad() || weight_VC.requires_grad());
        return Loss::apply(x_NC, weight_VC, targets_N.contiguous(), differentiated);
      },
  };
  return kernels;
}

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
// Each layer as one node of autograd. Shapes as in kernels.hpp. Tensors are float32, or all of bfloat16: then the
// products of layers are made of bfloat16, and the rest is float32 inside a layer.
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "kernel/fused_attention.hpp"
#include "kernel/gradient.hpp"
#include "kernel/kernels.hpp"
#include "kernel/product.hpp"
#include "kernel/rows.hpp"
#include "kernel/vector.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

/// x times a weight [I, O], or, `transposed`, [O, I], plus a bias where there is one. c10: LibTorch 1.13 has its own
/// optional; later it is the name of std::optional.
struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_BTI, const Tensor& weight, bool transposed,
                        const c10::optional<Tensor>& bias) {
    const Tensor bias_O = bias.value_or(Tensor()), weight_IO = transposed ? weight.t() : weight;
    ctx->save_for_backward({x_BTI, weight, bias_O});
    ctx->saved_data["transposed"] = transposed;
    const Tensor x_NI = x_BTI.reshape({-1, weight_IO.size(0)});
    const Tensor y_NO = at::empty({x_NI.size(0), weight_IO.size(1)}, x_NI.options());
    if (bias_O.defined()) y_NO.copy_(bias_O);
    multiply(y_NO, x_NI, weight_IO, bias_O.defined() ? 1 : 0);
    return y_NO.view({x_BTI.size(0), x_BTI.size(1), weight_IO.size(1)});
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const bool transposed = ctx->saved_data["transposed"].toBool();
    const Tensor &x_BTI = saved[0], &bias_O = saved[2], weight_OI = transposed ? saved[1] : saved[1].t();
    const Tensor dy_NO = gradients[0].reshape({-1, weight_OI.size(0)}), x_NI = x_BTI.reshape({-1, weight_OI.size(1)});
    Gradient weight(saved[1]);
    if (weight.wanted()) multiply(weight.sum(), transposed ? dy_NO.t() : x_NI.t(), transposed ? x_NI : dy_NO, 1);
    Tensor dbias_O;
    if (bias_O.defined() && bias_O.requires_grad()) {
      Gradient bias(bias_O);
      bias.sum().add_(dy_NO.sum(0));
      dbias_O = bias.returned();
    }
    const Tensor dx_NI = at::empty_like(x_NI);
    multiply(dx_NI, dy_NO, weight_OI, 0);
    return {dx_NI.view(x_BTI.sizes()), weight.returned(), Tensor(), dbias_O};
  }
};

Tensor linear(const Tensor& x_BTI, const Tensor& weight, const Tensor& bias_O, bool transposed = false) {
  return Linear::apply(x_BTI, weight, transposed, bias_O.defined() ? c10::optional<Tensor>(bias_O) : c10::nullopt);
}

struct Gelu : torch::autograd::Function<Gelu> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    RECORD_USER_SCOPE("zs::gelu");
    ctx->save_for_backward({x});
    const Tensor y = at::empty_like(x);
    each_row(std::tie(x, y), [](std::int64_t i, const Rows& from, const Rows& to) {
      gelu(from.read(i), to.place(i), from.size()), to.write(i);
    });
    return y;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Tensor x = ctx->get_saved_variables()[0], dy = gradients[0].contiguous();
    const Tensor dx = at::empty_like(x);
    each_row(std::tie(x, dy, dx), [](std::int64_t i, const Rows& at_x, const Rows& from, const Rows& to) {
      gelu_backward(at_x.read(i), from.read(i), to.place(i), to.size()), to.write(i);
    });
    return {dx};
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
    const Tensor dy_NC = gradients[0].reshape({-1, weight_VC.size(1)}).to(at::kFloat);
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
      weight.sum().select(0, token).add_(row_C.to(weight_VC.scalar_type()));
    }
    return {weight.returned(), Tensor()};
  }
};

/// The logits are made for C rows at a time, and become their own gradient at once. Where there are more rows, that
/// gradient is used up in the forward pass: what waits for backward is as large as the weight, however many rows.
struct Loss : torch::autograd::Function<Loss> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_NC, const Tensor& weight_VC, const Tensor& targets_N,
                        double cap, bool differentiated) {
    RECORD_USER_SCOPE("zs::loss");
    const std::int64_t N = x_NC.size(0), C = x_NC.size(1), V = weight_VC.size(0), rows = std::min(N, C);
    const auto* const targets = targets_N.data_ptr<std::int64_t>();
    const Tensor chunk = at::empty({rows, V}, x_NC.options());
    std::vector<float> losses(static_cast<std::size_t>(N));
    Tensor dx_NC, dweight_VC;
    if (differentiated && rows < N) {
      dx_NC = at::empty_like(x_NC);
      if (weight_VC.requires_grad()) dweight_VC = at::empty_like(weight_VC, at::kFloat);
    }
    for (std::int64_t begin = 0; begin < N; begin += rows) {
      const std::int64_t count = std::min(rows, N - begin);
      const Tensor logits_RV = chunk.narrow(0, 0, count), x_RC = x_NC.narrow(0, begin, count);
      multiply(logits_RV, x_RC, weight_VC.t(), 0);
      each_row(std::tie(logits_RV), [&](std::int64_t i, const Rows& logits) {
        float* const row = logits.read(i);
        const auto slopes = std::make_unique_for_overwrite<float[]>(cap > 0 ? static_cast<std::size_t>(V) : 0);
        if (cap > 0) kernel::cap(row, slopes.get(), V, static_cast<float>(cap));
        losses[static_cast<std::size_t>(begin + i)] =
            cross_entropy(row, V, targets[begin + i], 1.0F / static_cast<float>(N), differentiated);
        if (differentiated && cap > 0) multiply(slopes.get(), row, V);
        if (differentiated) logits.write(i);
      });
      if (!dx_NC.defined()) continue;
      multiply(dx_NC.narrow(0, begin, count), logits_RV, weight_VC, 0);
      if (dweight_VC.defined()) add_product(dweight_VC, logits_RV.t(), x_RC, /*first=*/begin == 0);
    }
    ctx->save_for_backward({x_NC, weight_VC});
    if (differentiated && !dx_NC.defined()) ctx->saved_data["dlogits"] = chunk;
    ctx->saved_data["dx"] = dx_NC;
    ctx->saved_data["dweight"] = dweight_VC;
    return at::full({}, std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(N), at::kFloat);
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &x_NC = saved[0], &weight_VC = saved[1];
    const double scale = gradients[0].item<float>();
    Gradient weight(weight_VC);
    if (const Tensor dx_NC = ctx->saved_data["dx"].toTensor(); dx_NC.defined()) {
      if (weight.wanted()) weight.sum().add_(ctx->saved_data["dweight"].toTensor(), scale);
      return {dx_NC * scale, weight.returned(), Tensor(), Tensor(), Tensor()};
    }
    const Tensor dlogits_NV = ctx->saved_data["dlogits"].toTensor(), dx_NC = at::empty_like(x_NC);
    if (weight.wanted()) multiply(weight.sum(), dlogits_NV.t(), x_NC, 1, scale);
    multiply(dx_NC, dlogits_NV, weight_VC, 0, scale);
    return {dx_NC, weight.returned(), Tensor(), Tensor(), Tensor()};
  }

 private:
  /// sum, which is float32, plus a b; a b alone where it is the first.
  static void add_product(const Tensor& sum, const Tensor& a, const Tensor& b, bool first) {
    if (a.scalar_type() == at::kFloat) return multiply(sum, a, b, first ? 0 : 1);
    const Tensor product = at::empty(sum.sizes(), a.options());
    multiply(product, a, b, 0);
    first ? sum.copy_(product) : sum.add_(product);
  }
};

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Variables forward(AutogradContext* ctx, const Tensor& given_BTC, const Tensor& weight_C, double epsilon) {
    const Tensor x_BTC = given_BTC.contiguous(), wide_C = weight_C.to(at::kFloat);
    const Tensor y_BTC = at::empty_like(x_BTC);
    const Tensor scale_N = at::empty({Rows(x_BTC).count()}, at::kFloat);
    each_row(std::tie(x_BTC, y_BTC), [&](std::int64_t n, const Rows& x, const Rows& y) {
      scale_N.data_ptr<float>()[n] =
          rms_norm(x.read(n), wide_C.data_ptr<float>(), y.place(n), x.size(), static_cast<float>(epsilon));
      y.write(n);
    });
    ctx->save_for_backward({x_BTC, weight_C, scale_N});
    ctx->set_materialize_grads(false);
    return {x_BTC, y_BTC};
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &x_BTC = saved[0], &weight_C = saved[1], &scale_N = saved[2];
    Gradient weight(weight_C);
    if (!gradients[1].defined()) return {gradients[0], weight.returned(), Tensor()};
    const Tensor dy_BTC = gradients[1].contiguous(), wide_C = weight_C.to(at::kFloat);
    const Tensor past_BTC = gradients[0].defined() ? gradients[0].contiguous() : dy_BTC;
    const Tensor dx_BTC = at::empty_like(x_BTC);
    const float* const scales = scale_N.data_ptr<float>();
    each_row(std::tie(x_BTC, dy_BTC, past_BTC, dx_BTC),
             [&](std::int64_t n, const Rows& x, const Rows& dy, const Rows& past, const Rows& dx) {
               rms_norm_backward(x.read(n), wide_C.data_ptr<float>(), dy.read(n),
                                 gradients[0].defined() ? past.read(n) : nullptr, scales[n], dx.place(n), x.size());
               dx.write(n);
             });
    if (!weight.wanted()) return {dx_BTC, weight.returned(), Tensor()};
    // Added up first, as a separate gradient: further gradients are then added to the sum.
    const Tensor sum_C = at::zeros({x_BTC.size(-1)}, at::kFloat);
    device::in_parts(sum_C.numel(), /*least=*/256, [&](std::int64_t begin, std::int64_t end) {
      const Rows x(x_BTC), dy(dy_BTC);
      for (std::int64_t n = 0; n < x.count(); ++n)
        rms_norm_backward_weight(x.read(n) + begin, dy.read(n) + begin, scales[n], sum_C.data_ptr<float>() + begin,
                                 end - begin);
    });
    weight.sum().add_(sum_C.to(weight_C.scalar_type()));
    return {dx_BTC, weight.returned(), Tensor()};
  }
};

struct Swiglu : torch::autograd::Function<Swiglu> {
  static Tensor forward(AutogradContext* ctx, const Tensor& gate, const Tensor& up) {
    ctx->save_for_backward({gate, up});
    const Tensor y = at::empty_like(gate);
    each_row(std::tie(gate, up, y), [](std::int64_t i, const Rows& of_gate, const Rows& of_up, const Rows& to) {
      swiglu(of_gate.read(i), of_up.read(i), to.place(i), to.size()), to.write(i);
    });
    return y;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &gate = saved[0], &up = saved[1], dy = gradients[0].contiguous();
    const Tensor dgate = at::empty_like(gate), dup = at::empty_like(up);
    each_row(std::tie(gate, up, dy, dgate, dup), [](std::int64_t i, const Rows& of_gate, const Rows& of_up,
                                                    const Rows& from, const Rows& to_gate, const Rows& to_up) {
      swiglu_backward(of_gate.read(i), of_up.read(i), from.read(i), to_gate.place(i), to_up.place(i), from.size());
      to_gate.write(i);
      to_up.write(i);
    });
    return {dgate, dup};
  }
};

struct Rotate : torch::autograd::Function<Rotate> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_BTE, const Tensor& cos_TR, const Tensor& sin_TR) {
    ctx->save_for_backward({cos_TR, sin_TR});
    return turned(x_BTE.contiguous(), cos_TR, sin_TR, /*back=*/false);
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    return {turned(gradients[0].contiguous(), saved[0], saved[1], /*back=*/true), Tensor(), Tensor()};
  }

 private:
  static Tensor turned(const Tensor& x_BTE, const Tensor& cos_TR, const Tensor& sin_TR, bool back) {
    const std::int64_t T = x_BTE.size(1), R = cos_TR.size(1), H = x_BTE.size(2) / (2 * R);
    const Tensor y_BTE = at::empty_like(x_BTE), from_NE = x_BTE.view({-1, 2 * R}), to_NE = y_BTE.view({-1, 2 * R});
    each_row(std::tie(from_NE, to_NE), [&](std::int64_t i, const Rows& from, const Rows& to) {
      const std::int64_t t = i / H % T;
      rotate(from.read(i), cos_TR.data_ptr<float>() + t * R, sin_TR.data_ptr<float>() + t * R, back, to.place(i), R);
      to.write(i);
    });
    return y_BTE;
  }
};

}  // namespace

const Kernels& fused() {
  static const Kernels kernels = {
      plain().norm,
      [](const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
        return linear(x_BTI, weight_IO, bias_O);
      },
      [](const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
        return Gelu::apply(linear(x_BTI, weight_IO, bias_O));
      },
      [](const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O, const Tensor& residual_BTO) {
        return residual_BTO + linear(x_BTI, weight_IO, bias_O);
      },
      [](const Tensor& qkv_BTE, std::int64_t heads, double dropout, std::uint64_t key) {
        return fused_attention(qkv_BTE, {heads, dropout, key});
      },
      [](const Tensor& weight_VC, const Tensor& tokens_BT) { return Embedding::apply(weight_VC, tokens_BT); },
      [](const Tensor& x_NC, const Tensor& weight_VC, const Tensor& targets_N, double cap) {
        const bool differentiated = at::GradMode::is_enabled() && (x_NC.requires_grad() || weight_VC.requires_grad());
        return Loss::apply(x_NC, weight_VC, targets_N.contiguous(), cap, differentiated);
      },
      [](const Tensor& x_BTC, const NormWeight& weight_C, double epsilon) {
        const Variables made = RmsNorm::apply(x_BTC, weight_C.factor(), epsilon);
        return Normed{made[0], made[1]};
      },
      [](const Tensor& x_BTI, const Tensor& weight_OI, const Tensor& bias_O) {
        return linear(x_BTI, weight_OI, bias_O, /*transposed=*/true);
      },
      [](const Tensor& gate_BTI, const Tensor& up_BTI) { return Swiglu::apply(gate_BTI, up_BTI); },
      [](const Tensor& gate_BTI, const Tensor& up_BTI) { return Gelu::apply(gate_BTI) * up_BTI; },
      [](const Tensor& x_BTE, const Tensor& cos_TR, const Tensor& sin_TR) {
        return Rotate::apply(x_BTE, cos_TR, sin_TR);
      },
      [](const Tensor& q_BTE, const Tensor& k_BTF, const Tensor& v_BTF, const Attending& how) {
        return fused_grouped_attention(q_BTE, k_BTF, v_BTF, how, /*causal=*/true);
      },
      [](const Tensor& q_BTE, const Tensor& k_BTE, const Tensor& v_BTE, std::int64_t heads, double dropout,
         std::uint64_t key) {
        return fused_grouped_attention(q_BTE, k_BTE, v_BTE, {heads, dropout, key}, /*causal=*/false);
      },
      [](const Tensor& x_BTC, const AttentionLayer& layer) { return attention_layer(fused(), x_BTC, layer); },
      [](const Tensor& x_BTC, const GatedLayer& layer) { return gated_layer(fused(), x_BTC, layer); },
  };
  return kernels;
}

}  // namespace zs::kernel

// SPDX-License-Identifier: Apache-2.0
// Each layer as one node of autograd on a GPU. Shapes as in kernels.hpp; F is the width of a GELU layer.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <bit>

#include "kernel/attention.hpp"
#include "kernel/cuda_layers.hpp"
#include "kernel/cuda_product.hpp"
#include "kernel/cuda_rows.hpp"
#include "kernel/gradient.hpp"
#include "kernel/kernels.hpp"

namespace zs::kernel::cuda {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

/// sum_C += the sum of x_NC over rows.
void add_column_sums(const Tensor& x_NC, const Tensor& sum_C) {
  const std::int64_t N = x_NC.size(0), C = x_NC.size(1);
  const Tensor scratch = floats(column_sum_scratch(N, C));
  with_type(x_NC, [&](auto type) {
    using T = decltype(type);
    column_sum(data<T>(x_NC), data<T>(sum_C), scratch.data_ptr<float>(), N, C, stream());
  });
}

using Role = Factor::Role;
using Wants = Factor::Wants;

/// The maxima that backward needs to round factors as forward did.
struct Largest {
  Tensor x, weight;
};

/// y = x weight, with the epilogue.
Largest multiply_forward(const Tensor& y_NO, const Tensor& x_NI, const Tensor& weight_IO, const Epilogue& epilogue) {
  const Factor x(x_NI, Role::value, Wants::rows), weight(weight_IO, Role::value, Wants::columns);
  multiply(y_NO, x.rows(), weight.columns(), epilogue);
  return {x.largest(), weight.largest()};
}

/// weight.grad += x^T dy, dx = dy weight^T.
void multiply_backward(Gradient& grad, const Tensor& dx_NI, const Tensor& x_NI, const Tensor& weight_IO,
                       const Tensor& dy_NO, const Largest& largest) {
  const Factor dy(dy_NO, Role::gradient, Wants::both);
  multiply(grad.sum(), Factor(x_NI, Role::value, Wants::columns, largest.x).columns(), dy.columns(),
           {.addend_MN = grad.sum()});
  multiply(dx_NI, dy.rows(), Factor(weight_IO, Role::value, Wants::rows, largest.weight).rows());
}

struct Norm : torch::autograd::Function<Norm> {
  static Variables forward(AutogradContext* ctx, const Tensor& x_BTC, const Tensor& weight_C, const Tensor& bias_C,
                           double epsilon) {
    const std::int64_t C = x_BTC.size(-1), N = x_BTC.numel() / C;
    const Tensor x = x_BTC.contiguous();
    Tensor y = at::empty_like(x), stats_2N = floats(2 * N);
    with_type(x, [&](auto type) {
      using T = decltype(type);
      norm(data<T>(x), data<T>(weight_C), data<T>(bias_C), data<T>(y), stats_2N.data_ptr<float>(),
           stats_2N.data_ptr<float>() + N, N, C, static_cast<float>(epsilon), stream());
    });
    ctx->save_for_backward({x, weight_C, bias_C, stats_2N});
    ctx->set_materialize_grads(false);
    return {x, y};
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &weight_C = saved[1], &stats_2N = saved[3];
    const std::int64_t C = x.size(-1), N = x.numel() / C;
    Gradient weight(weight_C), bias(saved[2]);
    if (!gradients[1].defined()) return {gradients[0], weight.returned(), bias.returned(), Tensor()};
    const Tensor dy = gradients[1].contiguous();
    const Tensor past = gradients[0].defined() ? gradients[0].contiguous() : Tensor();
    Tensor dx = at::empty_like(x);
    const Tensor scratch = floats(norm_backward_scratch(N, C));
    with_type(x, [&](auto type) {
      using T = decltype(type);
      norm_backward<T>(data<T>(x), data<T>(weight_C), stats_2N.data_ptr<float>(), stats_2N.data_ptr<float>() + N,
                       data<T>(dy), past.defined() ? data<T>(past) : nullptr, data<T>(dx), data<T>(weight.sum()),
                       data<T>(bias.sum()), scratch.data_ptr<float>(), N, C, stream());
    });
    return {dx, weight.returned(), bias.returned(), Tensor()};
  }
};

struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O,
                        const std::optional<Tensor>& residual_BTO) {
    ctx->saved_data["adds"] = residual_BTO.has_value();
    Tensor y_BTO = at::empty({x_BTI.size(0), x_BTI.size(1), weight_IO.size(1)}, x_BTI.options());
    Epilogue epilogue{.bias_N = bias_O};
    if (residual_BTO) epilogue.addend_MN = rows(*residual_BTO);
    const Largest largest = multiply_forward(rows(y_BTO), rows(x_BTI), weight_IO, epilogue);
    ctx->save_for_backward({x_BTI, weight_IO, bias_O, largest.x, largest.weight});
    return y_BTO;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &x_BTI = saved[0], &weight_IO = saved[1];
    const Tensor dy_BTO = gradients[0].contiguous(), dy_NO = rows(dy_BTO);
    Gradient weight(weight_IO), bias(saved[2]);
    Tensor dx_BTI = at::empty_like(x_BTI);
    multiply_backward(weight, rows(dx_BTI), rows(x_BTI), weight_IO, dy_NO, {saved[3], saved[4]});
    add_column_sums(dy_NO, bias.sum());
    return {dx_BTI, weight.returned(), bias.returned(), ctx->saved_data["adds"].toBool() ? dy_BTO : Tensor()};
  }
};

/// The same of a weight [O, I]. Backward computes the output of LibTorch's GELU again, from what GELU keeps.
struct Projected : torch::autograd::Function<Projected> {
  static Tensor forward(AutogradContext* ctx, const Tensor& given_BTI, const Tensor& weight_OI,
                        const std::optional<Tensor>& bias) {
    const Tensor x_BTI = given_BTI.contiguous(), bias_O = bias.value_or(Tensor());
    const Tensor y_BTO = at::empty({x_BTI.size(0), x_BTI.size(1), weight_OI.size(0)}, x_BTI.options());
    multiply(rows(y_BTO), rows(x_BTI), weight_OI.t(), {.bias_N = bias_O});
    const auto node = given_BTI.grad_fn();
    const auto* const gelu = dynamic_cast<const torch::autograd::generated::GeluBackward0*>(node.get());
    if (gelu) ctx->saved_data["gelu"] = gelu->approximate;
    ctx->save_for_backward({gelu ? gelu->self_.unpack().detach() : x_BTI, weight_OI, bias_O});
    return y_BTO;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &weight_OI = saved[1], &bias_O = saved[2];
    const auto gelu = ctx->saved_data.find("gelu");
    const Tensor x_BTI =
        gelu == ctx->saved_data.end() ? saved[0] : at::gelu(saved[0], gelu->second.toStringRef()).contiguous();
    const Tensor dy_NO = rows(gradients[0].contiguous()), dx_BTI = at::empty_like(x_BTI);
    Gradient weight(weight_OI);
    if (weight.wanted()) multiply(weight.sum(), dy_NO.t(), rows(x_BTI), {.addend_MN = weight.sum()});
    multiply(rows(dx_BTI), dy_NO, weight_OI);
    if (!bias_O.defined()) return {dx_BTI, weight.returned(), Tensor()};
    Gradient bias(bias_O);
    if (bias.wanted()) add_column_sums(dy_NO, bias.sum());
    return {dx_BTI, weight.returned(), bias.returned()};
  }
};

struct LinearGelu : torch::autograd::Function<LinearGelu> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_BTI, const Tensor& weight_IF, const Tensor& bias_F) {
    Tensor pre_BTF = at::empty({x_BTI.size(0), x_BTI.size(1), weight_IF.size(1)}, x_BTI.options());
    const Largest largest = multiply_forward(rows(pre_BTF), rows(x_BTI), weight_IF, {.bias_N = bias_F});
    Tensor y_BTF = at::empty_like(pre_BTF);
    with_type(pre_BTF, [&](auto type) {
      using T = decltype(type);
      gelu(data<T>(pre_BTF), data<T>(y_BTF), pre_BTF.numel(), stream());
    });
    ctx->save_for_backward({x_BTI, weight_IF, bias_F, pre_BTF, largest.x, largest.weight});
    return y_BTF;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &x_BTI = saved[0], &weight_IF = saved[1], pre_NF = rows(saved[3]);
    const std::int64_t N = pre_NF.size(0), F = pre_NF.size(1);
    const Tensor dy_NF = rows(gradients[0].contiguous());
    Gradient weight(weight_IF), bias(saved[2]);
    Tensor dpre_NF = at::empty_like(pre_NF);
    const Tensor scratch = floats(column_sum_scratch(N, F));
    with_type(pre_NF, [&](auto type) {
      using T = decltype(type);
      gelu_backward(data<T>(pre_NF), data<T>(dy_NF), data<T>(dpre_NF), data<T>(bias.sum()), scratch.data_ptr<float>(),
                    N, F, stream());
    });
    Tensor dx_BTI = at::empty_like(x_BTI);
    multiply_backward(weight, rows(dx_BTI), rows(x_BTI), weight_IF, dpre_NF, {saved[4], saved[5]});
    return {dx_BTI, weight.returned(), bias.returned()};
  }
};

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& qkv_BTE, std::int64_t heads) {
    Attended attended = attention_forward(qkv_BTE, Heads{heads, heads});
    ctx->save_for_backward({qkv_BTE, attended.out_BTC, attended.stats_BHT1});
    ctx->saved_data["heads"] = heads;
    return attended.out_BTC;
  }
  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const std::int64_t heads = ctx->saved_data["heads"].toInt();
    return {attention_backward(saved[0], {saved[1], saved[2]}, gradients[0].contiguous(), Heads{heads, heads}),
            Tensor()};
  }
};

/// Bytes of logits that exist at one time. The weight's gradient is read and written once for each part of the rows.
constexpr std::int64_t kLossBytes = std::int64_t{2} << 30;
/// The columns of a matrix product are a multiple of this number: kernels for other widths have a tenth of the speed.
constexpr std::int64_t kColumns = 8;

struct Loss : torch::autograd::Function<Loss> {
  /// If `with_gradient`, computes the gradient together with the loss, one group of rows after another: no logits are
  /// kept.
  static Tensor forward(AutogradContext* ctx, const Tensor& x_NC, const Tensor& weight_VC, const Tensor& targets_N,
                        double cap, bool with_gradient) {
    const std::int64_t N = x_NC.size(0), C = x_NC.size(1), V = weight_VC.size(0);
    const std::int64_t padded = (V + kColumns - 1) / kColumns * kColumns;
    Tensor weight_PC = weight_VC.detach();
    if (padded != V) {
      weight_PC = at::zeros({padded, C}, weight_VC.options());
      weight_PC.narrow(0, 0, V).copy_(weight_VC);
    }
    const auto most = static_cast<std::uint64_t>(kLossBytes / (padded * x_NC.element_size()));
    const std::int64_t group =
        std::min(N, static_cast<std::int64_t>(std::bit_floor(std::max<std::uint64_t>(most, 256))));
    const Tensor logits_GP = at::empty({group, padded}, x_NC.options()), losses_N = floats(N);
    Tensor dx_NC, dweight_PC;
    if (with_gradient) {
      dx_NC = at::empty_like(x_NC);
      if (weight_VC.requires_grad()) dweight_PC = at::empty({padded, C}, x_NC.options().dtype(at::kFloat));
    }
    for (std::int64_t begin = 0; begin < N; begin += group) {
      const std::int64_t count = std::min(group, N - begin);
      const Tensor logits = logits_GP.narrow(0, 0, count), x = x_NC.narrow(0, begin, count);
      multiply(logits, x, weight_PC.t());
      with_type(logits, [&](auto type) {
        using T = decltype(type);
        cross_entropy(data<T>(logits), padded, targets_N.data_ptr<std::int64_t>() + begin,
                      losses_N.data_ptr<float>() + begin, 1.0F / static_cast<float>(N), static_cast<float>(cap), count,
                      V, stream());
      });
      if (!with_gradient) continue;
      multiply(dx_NC.narrow(0, begin, count), logits, weight_PC);
      if (!dweight_PC.defined()) continue;
      multiply(dweight_PC, logits.t(), x, begin == 0 ? Epilogue{} : Epilogue{.addend_MN = dweight_PC});
    }
    ctx->save_for_backward({weight_VC});
    ctx->saved_data["dx"] = dx_NC;
    ctx->saved_data["dweight"] = dweight_PC.defined() ? dweight_PC.narrow(0, 0, V) : Tensor();
    Tensor loss = at::empty({}, losses_N.options());
    mean(losses_N.data_ptr<float>(), loss.data_ptr<float>(), N, stream());
    return loss;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Tensor weight_VC = ctx->get_saved_variables()[0];
    Tensor dx_NC = ctx->saved_data["dx"].toTensor(), dweight_VC = ctx->saved_data["dweight"].toTensor();
    Gradient weight(weight_VC);
    const auto* const factor = gradients[0].data_ptr<float>();
    with_type(weight_VC, [&](auto type) {
      using T = decltype(type);
      if (weight.wanted())
        add_scaled(factor, dweight_VC.data_ptr<float>(), data<T>(weight.sum()), dweight_VC.numel(), stream());
      scale(factor, data<T>(dx_NC), dx_NC.numel(), stream());
    });
    return {dx_NC, weight.returned(), Tensor(), Tensor(), Tensor()};
  }
};

Tensor attention(const Tensor& qkv_BTE, std::int64_t heads, double dropout, std::uint64_t key) {
  if (dropout == 0 && attention_fits(AttentionShape::of(qkv_BTE, Heads{heads, heads}), {heads, heads}))
    return Attention::apply(qkv_BTE, heads);
  return plain().attention(qkv_BTE, heads, dropout, key);
}

}  // namespace

Tensor project(const Tensor& x_BTI, const Tensor& weight_OI, const Tensor& bias_O) {
  constexpr std::int64_t kPack = 16;  // bytes
  const auto whole = [&](std::int64_t width) { return width * x_BTI.element_size() % kPack == 0; };
  if (x_BTI.scalar_type() == at::kHalf || x_BTI.numel() == 0 || !whole(weight_OI.size(0)) || !whole(weight_OI.size(1)))
    return plain().project(x_BTI, weight_OI, bias_O);
  return Projected::apply(x_BTI, weight_OI, bias_O.defined() ? std::optional(bias_O) : std::nullopt);
}

const Kernels& own() {
  static const Kernels kernels = {
      [](const Tensor& x_BTC, const Tensor& weight_C, const Tensor& bias_C, double epsilon) {
        const Variables made = Norm::apply(x_BTC, weight_C, bias_C, epsilon);
        return Normed{made[0], made[1]};
      },
      [](const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
        return Linear::apply(x_BTI.contiguous(), weight_IO, bias_O, std::optional<Tensor>());
      },
      [](const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O) {
        return LinearGelu::apply(x_BTI.contiguous(), weight_IO, bias_O);
      },
      [](const Tensor& x_BTI, const Tensor& weight_IO, const Tensor& bias_O, const Tensor& residual_BTO) {
        return Linear::apply(x_BTI.contiguous(), weight_IO, bias_O, std::optional<Tensor>(residual_BTO.contiguous()));
      },
      attention,
      embedding_layer,
      [](const Tensor& x_NC, const Tensor& weight_VC, const Tensor& targets_N, double cap) {
        return Loss::apply(x_NC.contiguous(), weight_VC, targets_N.contiguous(), cap,
                           at::GradMode::is_enabled() && (x_NC.requires_grad() || weight_VC.requires_grad()));
      },
      rms_norm_layer,
      project,
      plain().swiglu,
      plain().geglu,
      rotate_heads,
      attention_of_sequences,
      plain().bidirectional_attention,
      attention_layer,
      gated_layer,
      takes_sequences,
      &expert_parts(),
  };
  return kernels;
}

extern "C" const Kernels* zs_cuda_kernels() { return &own(); }

}  // namespace zs::kernel::cuda

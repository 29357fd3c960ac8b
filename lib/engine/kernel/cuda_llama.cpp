// SPDX-License-Identifier: Apache-2.0
// Llama's layers as nodes of autograd on a GPU. What a node keeps for backward is its input, the results of its
// products and one number a row; norms and SiLU are made again. Shapes as in kernels.hpp; N = B T, E = (H + 2 K) D.
#include "kernel/cuda_llama.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include "kernel/attention.hpp"
#include "kernel/cuda_layers.hpp"
#include "kernel/cuda_product.hpp"
#include "kernel/gradient.hpp"

namespace zs::kernel::cuda {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

/// Matrices of as many columns, one below the other. Where they lie so in memory it is a view: in a unit's flat buffer
/// they do. The product with it has the same shape, and so the same bits, either way.
class Joined {
 public:
  explicit Joined(std::vector<Tensor> parts) : parts_(std::move(parts)) {
    std::int64_t rows = 0;
    for (const Tensor& part : parts_) {
      const auto* const end = static_cast<const std::byte*>(parts_[0].data_ptr()) +
                              rows * part.size(1) * static_cast<std::int64_t>(part.element_size());
      adjacent_ = adjacent_ && part.data_ptr() == end && part.storage().is_alias_of(parts_[0].storage());
      rows += part.size(0);
    }
    const std::int64_t columns = parts_[0].size(1);
    whole_ = adjacent_ ? parts_[0].detach().as_strided({rows, columns}, {columns, 1}) : at::cat(parts_);
  }
  const Tensor& whole() const { return whole_; }
  /// Gives the parts what is in whole().
  void put_back() const {
    if (adjacent_) return;
    std::int64_t row = 0;
    for (const Tensor& part : parts_) {
      part.copy_(whole_.narrow(0, row, part.size(0)));
      row += part.size(0);
    }
  }

 private:
  std::vector<Tensor> parts_;
  bool adjacent_ = true;
  Tensor whole_;
};

using Role = Factor::Role;
using Wants = Factor::Wants;

/// weight.grad += dy^T x, of matrices [O, I].
void add_product(Gradient& weight, const Factor& dy_NO, const Factor& x_NI) {
  multiply(weight.sum(), dy_NO.columns(), x_NI.columns(), {.addend_MN = weight.sum()});
}
/// The same of weights below each other.
void add_product(const std::vector<Gradient*>& weights, const Factor& dy_NO, const Factor& x_NI) {
  std::vector<Tensor> sums;
  for (Gradient* const weight : weights) sums.push_back(weight->sum());
  const Joined sum(std::move(sums));
  multiply(sum.whole(), dy_NO.columns(), x_NI.columns(), {.addend_MN = sum.whole()});
  sum.put_back();
}

struct NormedRows {
  Tensor y_BTC, rstd_N;
};
NormedRows norm_forward(const Tensor& x_BTC, const Tensor& weight_C, double epsilon) {
  const std::int64_t C = x_BTC.size(-1), N = x_BTC.numel() / C;
  const NormedRows made{at::empty_like(x_BTC), floats(N)};
  with_type(x_BTC, [&](auto type) {
    using T = decltype(type);
    rms_norm(data<T>(x_BTC), data<T>(weight_C), data<T>(made.y_BTC), data<float>(made.rstd_N), N, C,
             static_cast<float>(epsilon), stream());
  });
  return made;
}

/// The gradient of x, to which `past` is added where it is defined; with `y`, what the norm gave, made again.
Tensor norm_backward(const Tensor& x_BTC, const Tensor& weight_C, const Tensor& rstd_N, const Tensor& dy_BTC,
                     const Tensor& past_BTC, Gradient& weight, Tensor* y_BTC = nullptr) {
  const std::int64_t C = x_BTC.size(-1), N = x_BTC.numel() / C;
  const Tensor dx_BTC = at::empty_like(x_BTC), scratch = floats(rms_norm_backward_scratch(N, C));
  if (y_BTC) *y_BTC = at::empty_like(x_BTC);
  with_type(x_BTC, [&](auto type) {
    using T = decltype(type);
    rms_norm_backward<T>(data<T>(x_BTC), data<T>(weight_C), data<float>(rstd_N), data<T>(dy_BTC),
                         past_BTC.defined() ? data<T>(past_BTC) : nullptr, data<T>(dx_BTC),
                         y_BTC ? data<T>(*y_BTC) : nullptr, data<T>(weight.sum()), data<float>(scratch), N, C,
                         stream());
  });
  return dx_BTC;
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Variables forward(AutogradContext* ctx, const Tensor& given_BTC, const Tensor& weight_C, double epsilon) {
    const Tensor x_BTC = given_BTC.contiguous();
    const NormedRows made = norm_forward(x_BTC, weight_C, epsilon);
    ctx->save_for_backward({x_BTC, weight_C, made.rstd_N});
    ctx->set_materialize_grads(false);
    return {x_BTC, made.y_BTC};
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    Gradient weight(saved[1]);
    if (!gradients[1].defined()) return {gradients[0], weight.returned(), Tensor()};
    const Tensor past = gradients[0].defined() ? gradients[0].contiguous() : Tensor();
    const Tensor dx = norm_backward(saved[0], saved[1], saved[2], gradients[1].contiguous(), past, weight);
    return {dx, weight.returned(), Tensor()};
  }
};

/// Turns the queries and keys of qkv in their place.
void turn(const Tensor& qkv_BTE, HeadCounts heads, const Tensor& cos_TR, const Tensor& sin_TR, bool back) {
  const std::int64_t B = qkv_BTE.size(0), T = qkv_BTE.size(1), E = qkv_BTE.size(2);
  with_type(qkv_BTE, [&](auto type) {
    using Number = decltype(type);
    rotate(data<Number>(qkv_BTE), E, heads.H + heads.K, data<float>(cos_TR), data<float>(sin_TR), B * T, T,
           cos_TR.size(1), back, stream());
  });
}

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& given_BTC, const Tensor& norm_C, const Tensor& q_EC,
                        const Tensor& k_EC, const Tensor& v_EC, const Tensor& o_CE, const Tensor& cos_TR,
                        const Tensor& sin_TR, double epsilon, std::int64_t H, std::int64_t K) {
    const Tensor x_BTC = given_BTC.contiguous();
    const Joined weights({q_EC, k_EC, v_EC});
    const Tensor qkv_BTE = at::empty({x_BTC.size(0), x_BTC.size(1), weights.whole().size(0)}, x_BTC.options());
    Tensor rstd_N, most_x, most_qkv;
    {
      const NormedRows normed = norm_forward(x_BTC, norm_C, epsilon);
      const Factor x(rows(normed.y_BTC), Role::value, Wants::rows), qkv(weights.whole(), Role::value, Wants::rows);
      multiply(rows(qkv_BTE), x.rows(), qkv.rows());
      rstd_N = normed.rstd_N, most_x = x.largest(), most_qkv = qkv.largest();
    }
    turn(qkv_BTE, {H, K}, cos_TR, sin_TR, /*back=*/false);
    const Attended attended = attention_forward(qkv_BTE, {H, K});
    const Tensor y_BTC = at::empty_like(x_BTC);
    const Factor out(rows(attended.out_BTC), Role::value, Wants::rows), o(o_CE, Role::value, Wants::rows);
    multiply(rows(y_BTC), out.rows(), o.rows(), {.addend_MN = rows(x_BTC)});
    ctx->save_for_backward({x_BTC, norm_C, q_EC, k_EC, v_EC, o_CE, cos_TR, sin_TR, rstd_N, qkv_BTE, attended.out_BTC,
                            attended.stats_BHT1, most_x, most_qkv, out.largest(), o.largest()});
    ctx->saved_data["H"] = H;
    ctx->saved_data["K"] = K;
    return y_BTC;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &x_BTC = saved[0], &o_CE = saved[5], &qkv_BTE = saved[9];
    const Attended attended{saved[10], saved[11]};
    const HeadCounts heads{ctx->saved_data["H"].toInt(), ctx->saved_data["K"].toInt()};
    const Tensor dy_BTC = gradients[0].contiguous();
    Gradient norm(saved[1]), q(saved[2]), k(saved[3]), v(saved[4]), o(o_CE);
    Tensor dout_BTC = at::empty_like(attended.out_BTC);
    {
      const Factor dy(rows(dy_BTC), Role::gradient, Wants::both);
      add_product(o, dy, {rows(attended.out_BTC), Role::value, Wants::columns, saved[14]});
      multiply(rows(dout_BTC), dy.rows(), Factor(o_CE, Role::value, Wants::columns, saved[15]).columns());
    }
    const Tensor dqkv_BTE = attention_backward(qkv_BTE, attended, dout_BTC, heads);
    dout_BTC = Tensor();
    turn(dqkv_BTE, heads, saved[6], saved[7], /*back=*/true);
    const Tensor dnormed_BTC = at::empty_like(x_BTC);
    const Factor dqkv(rows(dqkv_BTE), Role::gradient, Wants::both);
    const Joined weights({saved[2], saved[3], saved[4]});
    multiply(rows(dnormed_BTC), dqkv.rows(), Factor(weights.whole(), Role::value, Wants::columns, saved[13]).columns());
    Tensor normed_BTC;
    const Tensor dx_BTC = norm_backward(x_BTC, saved[1], saved[8], dnormed_BTC, dy_BTC, norm, &normed_BTC);
    add_product({&q, &k, &v}, dqkv, {rows(normed_BTC), Role::value, Wants::columns, saved[12]});
    return {dx_BTC,   norm.returned(), q.returned(), k.returned(), v.returned(), o.returned(),
            Tensor(), Tensor(),        Tensor(),     Tensor(),     Tensor()};
  }
};

struct Gated : torch::autograd::Function<Gated> {
  static Tensor forward(AutogradContext* ctx, const Tensor& given_BTC, const Tensor& norm_C, const Tensor& gate_IC,
                        const Tensor& up_IC, const Tensor& down_CI, double epsilon) {
    const Tensor x_BTC = given_BTC.contiguous();
    const std::int64_t B = x_BTC.size(0), T = x_BTC.size(1), I = gate_IC.size(0);
    const Tensor gate_up_BT2I = at::empty({B, T, 2 * I}, x_BTC.options());
    const Joined weights({gate_IC, up_IC});
    Tensor rstd_N, most_x, most_gate_up;
    {
      const NormedRows normed = norm_forward(x_BTC, norm_C, epsilon);
      const Factor x(rows(normed.y_BTC), Role::value, Wants::rows), gate_up(weights.whole(), Role::value, Wants::rows);
      multiply(rows(gate_up_BT2I), x.rows(), gate_up.rows());
      rstd_N = normed.rstd_N, most_x = x.largest(), most_gate_up = gate_up.largest();
    }
    const Tensor inner_BTI = at::empty({B, T, I}, x_BTC.options()), y_BTC = at::empty_like(x_BTC);
    with_type(x_BTC, [&](auto type) {
      using Number = decltype(type);
      swiglu(data<Number>(gate_up_BT2I), data<Number>(inner_BTI), B * T, I, stream());
    });
    const Factor inner(rows(inner_BTI), Role::value, Wants::rows), down(down_CI, Role::value, Wants::rows);
    multiply(rows(y_BTC), inner.rows(), down.rows(), {.addend_MN = rows(x_BTC)});
    ctx->save_for_backward({x_BTC, norm_C, gate_IC, up_IC, down_CI, rstd_N, gate_up_BT2I, most_x, most_gate_up,
                            inner.largest(), down.largest()});
    return y_BTC;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &x_BTC = saved[0], &down_CI = saved[4], &gate_up_BT2I = saved[6];
    const std::int64_t B = x_BTC.size(0), T = x_BTC.size(1), I = down_CI.size(1);
    const Tensor dy_BTC = gradients[0].contiguous();
    Gradient norm(saved[1]), gate(saved[2]), up(saved[3]), down(down_CI);
    const Tensor dgate_up_BT2I = at::empty_like(gate_up_BT2I);
    {
      const Tensor dinner_BTI = at::empty({B, T, I}, x_BTC.options()), inner_BTI = at::empty_like(dinner_BTI);
      const Factor dy(rows(dy_BTC), Role::gradient, Wants::both);
      multiply(rows(dinner_BTI), dy.rows(), Factor(down_CI, Role::value, Wants::columns, saved[10]).columns());
      with_type(x_BTC, [&](auto type) {
        using Number = decltype(type);
        swiglu_backward(data<Number>(gate_up_BT2I), data<Number>(dinner_BTI), data<Number>(dgate_up_BT2I),
                        data<Number>(inner_BTI), B * T, I, stream());
      });
      add_product(down, dy, {rows(inner_BTI), Role::value, Wants::columns, saved[9]});
    }
    const Tensor dnormed_BTC = at::empty_like(x_BTC);
    const Factor dgate_up(rows(dgate_up_BT2I), Role::gradient, Wants::both);
    const Joined weights({saved[2], saved[3]});
    multiply(rows(dnormed_BTC), dgate_up.rows(),
             Factor(weights.whole(), Role::value, Wants::columns, saved[8]).columns());
    Tensor normed_BTC;
    const Tensor dx_BTC = norm_backward(x_BTC, saved[1], saved[5], dnormed_BTC, dy_BTC, norm, &normed_BTC);
    add_product({&gate, &up}, dgate_up, {rows(normed_BTC), Role::value, Wants::columns, saved[7]});
    return {dx_BTC, norm.returned(), gate.returned(), up.returned(), down.returned(), Tensor()};
  }
};

struct Embedding : torch::autograd::Function<Embedding> {
  static Tensor forward(AutogradContext* ctx, const Tensor& weight_VC, const Tensor& tokens_BT) {
    ctx->save_for_backward({weight_VC, tokens_BT});
    return at::embedding(weight_VC, tokens_BT);
  }

  /// The rows of one token are added up, then added to its gradient: no other row is read or written.
  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &weight_VC = saved[0], dy_NC = rows(gradients[0].contiguous());
    Gradient weight(weight_VC);
    const auto [tokens_N, order_N] = at::sort(saved[1].reshape({-1}), /*stable=*/true, 0, /*descending=*/false);
    with_type(dy_NC, [&](auto type) {
      using Number = decltype(type);
      add_rows(tokens_N.data_ptr<std::int64_t>(), order_N.data_ptr<std::int64_t>(), data<Number>(dy_NC),
               data<Number>(weight.sum()), dy_NC.size(0), dy_NC.size(1), stream());
    });
    return {weight.returned(), Tensor()};
  }
};

/// A layer that LibTorch computes rounds nothing to 8 bits: it is refused where that was asked for.
void require_16_bits(const char* layer) {
  if (float8_in_use())
    throw Error(std::string("--fp8 has no kernel for this model's ") + layer +
                " (other norms, windows, caps or rotations than Llama's, biases, dropout, or widths that are no whole "
                "number of 16 bytes): leave it out");
}

bool has_kernels(const Tensor& x) { return x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16; }
bool whole_packs(std::int64_t C, const Tensor& x) { return C * x.element_size() % 16 == 0; }

}  // namespace

Normed rms_norm_layer(const Tensor& x_BTC, const Tensor& weight_C, double epsilon) {
  if (!has_kernels(x_BTC) || weight_C.scalar_type() != x_BTC.scalar_type() ||
      !rms_norm_fits(x_BTC.size(-1), x_BTC.element_size()))
    return plain().rms_norm(x_BTC, weight_C, epsilon);
  const Variables made = RmsNorm::apply(x_BTC, weight_C, epsilon);
  return {made[0], made[1]};
}

Tensor attention_layer(const Tensor& x_BTC, const AttentionLayer& layer) {
  const std::int64_t H = layer.attending.heads, D = layer.q.weight_OI.size(0) / H, K = layer.k.weight_OI.size(0) / D;
  const bool has_bias =
      layer.q.bias_O.defined() || layer.k.bias_O.defined() || layer.v.bias_O.defined() || layer.o.bias_O.defined();
  if (!layer.plain() || has_bias || layer.attending.dropout > 0 || x_BTC.scalar_type() != at::kBFloat16 ||
      !rms_norm_fits(x_BTC.size(-1), x_BTC.element_size()) || !rotate_fits(D / 2, x_BTC.element_size()) ||
      !attention_fits({x_BTC.size(0), x_BTC.size(1), H, K, D, x_BTC.scalar_type()}))
    return require_16_bits("attention"), kernel::attention_layer(own(), x_BTC, layer);
  return Attention::apply(x_BTC, layer.norm_C, layer.q.weight_OI, layer.k.weight_OI, layer.v.weight_OI,
                          layer.o.weight_OI, layer.cos_TR, layer.sin_TR, layer.epsilon, H, K);
}

Tensor gated_layer(const Tensor& x_BTC, const GatedLayer& layer) {
  const bool has_bias = layer.gate.bias_O.defined() || layer.up.bias_O.defined() || layer.down.bias_O.defined();
  if (!layer.plain() || has_bias || !has_kernels(x_BTC) || !rms_norm_fits(x_BTC.size(-1), x_BTC.element_size()) ||
      !whole_packs(layer.gate.weight_OI.size(0), x_BTC))
    return require_16_bits("feed-forward network"), kernel::gated_layer(own(), x_BTC, layer);
  return Gated::apply(x_BTC, layer.norm_C, layer.gate.weight_OI, layer.up.weight_OI, layer.down.weight_OI,
                      layer.epsilon);
}

Tensor embedding_layer(const Tensor& weight_VC, const Tensor& tokens_BT) {
  if (!has_kernels(weight_VC) || !whole_packs(weight_VC.size(1), weight_VC))
    return plain().embedding(weight_VC, tokens_BT);
  return Embedding::apply(weight_VC, tokens_BT);
}

}  // namespace zs::kernel::cuda

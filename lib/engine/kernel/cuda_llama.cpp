// SPDX-License-Identifier: Apache-2.0
// A decoder's layers as nodes of autograd on a GPU. Families choose the parts of a layer. A node keeps for backward its
// input, the results of its products and one number a row; backward computes norms and activations again. Shapes as in
// kernels.hpp; N = B T, E = (H + 2 K) D.
#include "kernel/cuda_llama.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include "kernel/attention.hpp"
#include "kernel/cuda_joint.hpp"
#include "kernel/cuda_layers.hpp"
#include "unit/kept.hpp"

namespace zs::kernel::cuda {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

float plus(const NormWeight& norm) { return norm.scale == NormScale::plus_one ? 1.0F : 0.0F; }

/// Norms of whole rows of x.
NormRows whole_rows(const Tensor& x_BTC) {
  const std::int64_t C = x_BTC.size(-1);
  return {x_BTC.numel() / C, C, C};
}

/// In `y`, which is added to `past_BTC` where that is defined; the result is one number of each row.
Tensor norm_forward(const Tensor& x, const NormWeight& norm, double epsilon, const NormRows& rows, const Tensor& y,
                    const Tensor& past = {}) {
  const Tensor rstd_N = floats(rows.N);
  with_type(x, [&](auto type) {
    using T = decltype(type);
    rms_norm<T>(data<T>(x), data<T>(norm.weight), past.defined() ? data<T>(past) : nullptr, data<T>(y),
                data<float>(rstd_N), rows, plus(norm), static_cast<float>(epsilon), stream());
  });
  return rstd_N;
}

/// In `dx` the gradient of x, to which `past` is added where it is defined; in `y`, where that is, what the norm gave.
void norm_backward(const Tensor& x, const NormWeight& norm, const Tensor& rstd_N, const NormRows& rows,
                   const Tensor& dy, const Tensor& past, Gradient& weight, const Tensor& dx, const Tensor& y = {}) {
  const bool wanted = weight.wanted();
  const Tensor scratch = floats(wanted ? rms_norm_backward_scratch(rows.N, rows.C) : 0);
  with_type(x, [&](auto type) {
    using T = decltype(type);
    rms_norm_backward<T>(data<T>(x), data<T>(norm.weight), data<float>(rstd_N), data<T>(dy),
                         past.defined() ? data<T>(past) : nullptr, data<T>(dx), y.defined() ? data<T>(y) : nullptr,
                         wanted ? data<T>(weight.sum()) : nullptr, data<float>(scratch), rows, plus(norm), stream());
  });
}

/// Stores the state of a node between forward and backward.
template <typename State>
void keep(AutogradContext& ctx, c10::intrusive_ptr<State> state) {
  ctx.saved_data["state"] = c10::IValue::make_capsule(std::move(state));
}
template <typename State>
c10::intrusive_ptr<State> taken(AutogradContext& ctx) {
  const auto found = ctx.saved_data.find("state");
  if (found == ctx.saved_data.end()) throw Error("backward of a layer runs a second time, and what it needs is gone");
  auto state = c10::static_intrusive_pointer_cast<State>(found->second.toCapsule());
  ctx.saved_data.erase(found);
  return state;
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Variables forward(AutogradContext* ctx, const Tensor& given_BTC, const Tensor& weight_C, int scale,
                           double epsilon) {
    const Tensor x_BTC = given_BTC.contiguous(), y_BTC = at::empty_like(x_BTC);
    const Tensor rstd_N =
        norm_forward(x_BTC, {weight_C, static_cast<NormScale>(scale)}, epsilon, whole_rows(x_BTC), y_BTC);
    ctx->save_for_backward({x_BTC, weight_C, rstd_N});
    ctx->saved_data["scale"] = scale;
    ctx->set_materialize_grads(false);
    return {x_BTC, y_BTC};
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const NormWeight norm(saved[1], static_cast<NormScale>(ctx->saved_data["scale"].toInt()));
    Gradient weight(saved[1]);
    if (!gradients[1].defined()) return {gradients[0], weight.returned(), Tensor(), Tensor()};
    const Tensor past = gradients[0].defined() ? gradients[0].contiguous() : Tensor(), dx = at::empty_like(saved[0]);
    norm_backward(saved[0], norm, saved[2], whole_rows(saved[0]), gradients[1].contiguous(), past, weight, dx);
    return {dx, weight.returned(), Tensor(), Tensor()};
  }
};

/// The common part of both layers: a norm, products of its result, then later products that are added to the input. The
/// norm before and the norm of the later products are optional.
struct Frame {
  NormWeight norm{}, post_norm{};
  double epsilon = 0;
  Joint in{}, out{};
  Tensor x_BTC{}, rstd_N{}, made_BTC{}, post_rstd_N{};  ///< made: the products before the norm after them

  /// in_BTX = the first products.
  void enter(const Tensor& in_BTX) {
    Tensor normed_BTC = x_BTC;
    if (norm.defined()) {
      normed_BTC = at::empty_like(x_BTC);
      rstd_N = norm_forward(x_BTC, norm, epsilon, whole_rows(x_BTC), normed_BTC);
    }
    in.forward(rows(in_BTX), rows(normed_BTC));
  }
  /// x plus the last products, or their norm.
  Tensor leave(const Tensor& inner_BTX) {
    const Tensor y_BTC = at::empty_like(x_BTC);
    if (!post_norm.defined()) {
      out.forward(rows(y_BTC), rows(inner_BTX), rows(x_BTC));
    } else {
      made_BTC = at::empty_like(x_BTC);
      out.forward(rows(made_BTC), rows(inner_BTX));
      post_rstd_N = norm_forward(made_BTC, post_norm, epsilon, whole_rows(made_BTC), y_BTC, x_BTC);
    }
    return y_BTC;
  }
  /// dinner_BTX = the gradient of the argument of leave(). finish() must follow, with that argument.
  void backward_of_leave(const Tensor& dy_BTC, const Tensor& dinner_BTX, Gradients& sums) {
    Tensor dmade_BTC = dy_BTC;
    if (post_norm.defined()) {
      dmade_BTC = at::empty_like(dy_BTC);
      norm_backward(made_BTC, post_norm, post_rstd_N, whole_rows(made_BTC), dy_BTC, {}, sums.of(post_norm.weight),
                    dmade_BTC);
      made_BTC = Tensor();
    }
    out.backward(rows(dinner_BTX), rows(dmade_BTC));
  }
  void finish(const Tensor& inner_BTX, Gradients& sums) { out.add(rows(inner_BTX), sums); }
  /// The gradient of x, from the gradient of the result of enter().
  Tensor backward_of_enter(const Tensor& din_BTX, const Tensor& dy_BTC, Gradients& sums) {
    const Tensor dx_BTC = at::empty_like(x_BTC);
    if (!norm.defined()) {
      in.backward(rows(dx_BTC), rows(din_BTX), rows(dy_BTC));
      in.add(rows(x_BTC), sums);
      return dx_BTC;
    }
    const Tensor dnormed_BTC = at::empty_like(x_BTC), normed_BTC = at::empty_like(x_BTC);
    in.backward(rows(dnormed_BTC), rows(din_BTX));
    norm_backward(x_BTC, norm, rstd_N, whole_rows(x_BTC), dnormed_BTC, dy_BTC, sums.of(norm.weight), dx_BTC,
                  normed_BTC);
    in.add(rows(normed_BTC), sums);
    return dx_BTC;
  }
  void list(Listed& listed) const {
    listed.add(norm.weight), in.list(listed), out.list(listed), listed.add(post_norm.weight);
  }
};

struct AttentionState : torch::CustomClassHolder {
  Frame frame;
  NormWeight q_norm, k_norm;
  Tensor cos_TR, sin_TR, qkv_BTE;  ///< before the norms of heads; turned where there are none
  Heads heads;
  Attended attended;

  void list(Listed& listed) const {
    frame.list(listed), listed.add(q_norm.weight), listed.add(k_norm.weight), listed.add(heads.sinks_H);
  }
  std::int64_t D() const { return qkv_BTE.size(2) / (heads.H + 2 * heads.K); }
  /// The norms of queries, or of keys: of each head, or of all of them together.
  NormRows rows_of(const NormWeight& norm, std::int64_t count) const {
    const std::int64_t N = qkv_BTE.size(0) * qkv_BTE.size(1), C = norm.weight.size(0), each = count * D() / C;
    return {N * each, C, qkv_BTE.size(2), each};
  }
  /// Turns queries and keys in their place.
  void turn(const Tensor& of_BTE, bool back) const {
    const std::int64_t B = of_BTE.size(0), T = of_BTE.size(1), E = of_BTE.size(2);
    with_type(of_BTE, [&](auto type) {
      using Number = decltype(type);
      rotate(data<Number>(of_BTE), E, heads.H + heads.K, D(), data<float>(cos_TR), data<float>(sin_TR), B * T, T,
             cos_TR.size(1), back, stream());
    });
  }
  Tensor queries(const Tensor& of_BTE) const { return of_BTE.narrow(2, 0, heads.H * D()); }
  Tensor keys(const Tensor& of_BTE) const { return of_BTE.narrow(2, heads.H * D(), heads.K * D()); }
  bool norms() const { return q_norm.defined(); }
  /// Queries, keys and values as attention takes them, of `qkv_BTE`; with the numbers of the norms' rows.
  Tensor ready(Tensor& q_rstd, Tensor& k_rstd) const {
    const Tensor made_BTE = at::empty_like(qkv_BTE);
    const std::int64_t past = (heads.H + heads.K) * D();
    q_rstd = norm_forward(queries(qkv_BTE), q_norm, frame.epsilon, rows_of(q_norm, heads.H), queries(made_BTE));
    k_rstd = norm_forward(keys(qkv_BTE), k_norm, frame.epsilon, rows_of(k_norm, heads.K), keys(made_BTE));
    made_BTE.narrow(2, past, heads.K * D()).copy_(qkv_BTE.narrow(2, past, heads.K * D()));
    turn(made_BTE, /*back=*/false);
    return made_BTE;
  }
};

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& given_BTC, const at::TensorList&,
                        const c10::intrusive_ptr<AttentionState>& state) {
    Frame& frame = state->frame;
    frame.x_BTC = given_BTC.contiguous();
    state->qkv_BTE = at::empty({given_BTC.size(0), given_BTC.size(1), frame.in.columns()}, given_BTC.options());
    frame.enter(state->qkv_BTE);
    Tensor ready_BTE = state->qkv_BTE;
    if (state->norms()) {
      Tensor q_rstd, k_rstd;
      ready_BTE = state->ready(q_rstd, k_rstd);
    } else {
      state->turn(ready_BTE, /*back=*/false);
    }
    state->attended = attention_forward(ready_BTE, state->heads);
    keep(*ctx, state);
    return frame.leave(state->attended.out_BTC);
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const auto state = taken<AttentionState>(*ctx);
    Frame& frame = state->frame;
    Listed parameters;
    state->list(parameters);
    Gradients sums(parameters);
    const Tensor dy_BTC = gradients[0].contiguous();
    Tensor dout_BTC = at::empty_like(state->attended.out_BTC), ready_BTE = state->qkv_BTE, q_rstd, k_rstd;
    frame.backward_of_leave(dy_BTC, dout_BTC, sums);
    frame.finish(state->attended.out_BTC, sums);
    if (state->heads.sinks_H.defined()) {
      Gradient& sinks = sums.of(state->heads.sinks_H);
      if (sinks.wanted()) sinks.sum().add_(gradient_of_sinks(state->attended, dout_BTC, state->heads));
    }
    if (state->norms()) ready_BTE = state->ready(q_rstd, k_rstd);
    const Tensor dqkv_BTE = attention_backward(ready_BTE, state->attended, dout_BTC, state->heads);
    dout_BTC = ready_BTE = Tensor(), state->attended = {};
    state->turn(dqkv_BTE, /*back=*/true);
    if (state->norms()) {
      const auto through = [&](const NormWeight& norm, const Tensor& rstd, const Tensor& x, const Tensor& d,
                               std::int64_t count) {
        norm_backward(x, norm, rstd, state->rows_of(norm, count), d, {}, sums.of(norm.weight), d);
      };
      through(state->q_norm, q_rstd, state->queries(state->qkv_BTE), state->queries(dqkv_BTE), state->heads.H);
      through(state->k_norm, k_rstd, state->keys(state->qkv_BTE), state->keys(dqkv_BTE), state->heads.K);
    }
    state->qkv_BTE = Tensor();
    return sums.after(frame.backward_of_enter(dqkv_BTE, dy_BTC, sums));
  }
};

struct GatedState : torch::CustomClassHolder {
  Frame frame;
  bool gelu = false, last = false;
  Tensor gate_up_BT2I;

  void list(Listed& listed) const { frame.list(listed); }
};

struct Gated : torch::autograd::Function<Gated> {
  static Tensor forward(AutogradContext* ctx, const Tensor& given_BTC, const at::TensorList&,
                        const c10::intrusive_ptr<GatedState>& state) {
    Frame& frame = state->frame;
    frame.x_BTC = given_BTC.contiguous();
    const std::int64_t B = given_BTC.size(0), T = given_BTC.size(1), I = frame.in.columns() / 2;
    state->gate_up_BT2I = at::empty({B, T, 2 * I}, given_BTC.options());
    frame.enter(state->gate_up_BT2I);
    // A second forward stops as soon as backward has all that it needs.
    const bool stops = state->last && unit::again() && !frame.post_norm.defined();
    if (stops && !frame.out.adapts()) return keep(*ctx, state), at::empty_like(frame.x_BTC);
    const Tensor inner_BTI = at::empty({B, T, I}, given_BTC.options());
    with_type(given_BTC, [&](auto type) {
      using Number = decltype(type);
      gated(state->gelu, data<Number>(state->gate_up_BT2I), data<Number>(inner_BTI), B * T, I, stream());
    });
    if (stops) frame.out.forward_again(rows(inner_BTI));
    keep(*ctx, state);
    return stops ? at::empty_like(frame.x_BTC) : frame.leave(inner_BTI);
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const auto state = taken<GatedState>(*ctx);
    Frame& frame = state->frame;
    Listed parameters;
    state->list(parameters);
    Gradients sums(parameters);
    const Tensor dy_BTC = gradients[0].contiguous(), dgate_up_BT2I = at::empty_like(state->gate_up_BT2I);
    const std::int64_t B = dy_BTC.size(0), T = dy_BTC.size(1), I = frame.in.columns() / 2;
    {
      const Tensor dinner_BTI = at::empty({B, T, I}, dy_BTC.options()), inner_BTI = at::empty_like(dinner_BTI);
      frame.backward_of_leave(dy_BTC, dinner_BTI, sums);
      with_type(dy_BTC, [&](auto type) {
        using Number = decltype(type);
        gated_backward(state->gelu, data<Number>(state->gate_up_BT2I), data<Number>(dinner_BTI),
                       data<Number>(dgate_up_BT2I), data<Number>(inner_BTI), B * T, I, stream());
      });
      frame.finish(inner_BTI, sums);
    }
    state->gate_up_BT2I = Tensor();
    return sums.after(frame.backward_of_enter(dgate_up_BT2I, dy_BTC, sums));
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

/// LibTorch's layers do not round to 8 bits: throws if --fp8 is set.
void require_16_bits(const char* layer) {
  if (float8_in_use())
    throw Error(std::string("--fp8 has no kernel for this model's ") + layer +
                " (norms of each head, documents, dropout, or widths that are no whole number of 16 bytes): leave "
                "it out");
}

bool has_kernels(const Tensor& x) { return x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16; }
bool whole_packs(std::int64_t C, const Tensor& x) { return C * x.element_size() % 16 == 0; }
/// Whether a kernel supports the norm of x; a norm that is left out needs none. The offset of a weight in its unit is
/// the same in every layout.
bool fits(const NormWeight& norm, const Tensor& x) {
  if (!norm.defined()) return true;
  const bool aligned = reinterpret_cast<std::uintptr_t>(norm.weight.data_ptr()) % 16 == 0;
  return aligned && norm.weight.scalar_type() == x.scalar_type() &&
         rms_norm_fits(norm.weight.size(0), x.element_size());
}
/// Whether the products of a layer can be made of x: of its type, of rows of whole packs, adapters of one scale.
bool fits(const Tensor& x, std::initializer_list<const Projection*> parts) {
  const auto adapted = std::ranges::find_if(parts, [](const Projection* part) { return part->adapter.defined(); });
  return std::ranges::all_of(parts, [&](const Projection* part) {
    return part->weight_OI.scalar_type() == x.scalar_type() && whole_packs(part->weight_OI.size(0), x) &&
           whole_packs(part->weight_OI.size(1), x) &&
           (!part->adapter.defined() ||
            (part->adapter.scale == (*adapted)->adapter.scale && whole_packs(part->adapter.a_RI.size(0), x)));
  });
}

template <typename Layer, typename State>
Tensor apply(const Tensor& x_BTC, const c10::intrusive_ptr<State>& state) {
  Listed parameters;
  state->list(parameters);
  return Layer::apply(x_BTC, at::TensorList(parameters.all()), state);
}

/// Whether the layer's node may normalise queries and keys. It does not for Qwen 3, whose digests come from separate
/// products of queries, keys and values.
bool takes_norms_of_heads(const AttentionLayer& layer, const Tensor& x) {
  return !layer.q_norm.defined() || (layer.q_norm.scale != NormScale::rounded && layer.k_norm.defined() &&
                                     fits(layer.q_norm, x) && fits(layer.k_norm, x));
}

}  // namespace

Normed rms_norm_layer(const Tensor& x_BTC, const NormWeight& norm, double epsilon) {
  if (!has_kernels(x_BTC) || !fits(norm, x_BTC)) return plain().rms_norm(x_BTC, norm, epsilon);
  const Variables made = RmsNorm::apply(x_BTC, norm.weight, static_cast<int>(norm.scale), epsilon);
  return {made[0], made[1]};
}

Tensor attention_layer(const Tensor& x_BTC, const AttentionLayer& layer) {
  const Attending& how = layer.attending;
  const std::int64_t H = how.heads, D = layer.q.weight_OI.size(0) / H, K = layer.k.weight_OI.size(0) / D;
  const Heads heads{H, K, how.scale, how.window, how.sinks_H, how.cap};
  if (!how.documents.empty() || how.dropout > 0 || x_BTC.scalar_type() != at::kBFloat16 || !fits(layer.norm_C, x_BTC) ||
      !fits(layer.post_norm_C, x_BTC) || !takes_norms_of_heads(layer, x_BTC) ||
      !fits(x_BTC, {&layer.q, &layer.k, &layer.v, &layer.o}) ||
      !rotate_fits(layer.cos_TR.size(1), x_BTC.element_size()) ||
      !attention_fits({x_BTC.size(0), x_BTC.size(1), H, K, D, x_BTC.scalar_type()}, heads))
    return require_16_bits("attention"), kernel::attention_layer(own(), x_BTC, layer);
  const auto state = c10::make_intrusive<AttentionState>();
  state->frame = {layer.norm_C, layer.post_norm_C, layer.epsilon, Joint({layer.q, layer.k, layer.v}), Joint({layer.o})};
  state->q_norm = layer.q_norm, state->k_norm = layer.k_norm;
  state->cos_TR = layer.cos_TR, state->sin_TR = layer.sin_TR, state->heads = heads;
  return apply<Attention>(x_BTC, state);
}

Tensor gated_layer(const Tensor& x_BTC, const GatedLayer& layer) {
  if (!has_kernels(x_BTC) || !fits(layer.norm_C, x_BTC) || !fits(layer.post_norm_C, x_BTC) ||
      !fits(x_BTC, {&layer.gate, &layer.up, &layer.down}))
    return require_16_bits("feed-forward network"), kernel::gated_layer(own(), x_BTC, layer);
  const auto state = c10::make_intrusive<GatedState>();
  state->frame = {layer.norm_C, layer.post_norm_C, layer.epsilon, Joint({layer.gate, layer.up}), Joint({layer.down})};
  state->gelu = layer.activation == Activation::gelu_tanh, state->last = layer.last;
  return apply<Gated>(x_BTC, state);
}

Tensor embedding_layer(const Tensor& weight_VC, const Tensor& tokens_BT) {
  if (!has_kernels(weight_VC) || !whole_packs(weight_VC.size(1), weight_VC))
    return plain().embedding(weight_VC, tokens_BT);
  return Embedding::apply(weight_VC, tokens_BT);
}

}  // namespace zs::kernel::cuda

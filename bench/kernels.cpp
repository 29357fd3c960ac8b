// SPDX-License-Identifier: Apache-2.0
// Decoders' layers on a GPU, of the parts that families choose from, fused beside LibTorch's operations: how far
// outputs and gradients are from those in float32, whether they repeat their bits, wherever the weights lie, and what
// forward and backward take. The same of products of 8 bits, beside LibTorch's products in float32 of factors that
// LibTorch has rounded. And a GPU's fingerprints, and matrices of 4 bits that it widens, beside the host's. TAP on
// stdout; status 1 where one is too far or does not repeat. bench/kernels [REPEATS [NAME]]: with NAME only small layers
// whose names contain it.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bits.hpp"
#include "device/backend.hpp"
#include "kernel/gated_experts.hpp"
#include "kernel/kernels.hpp"

namespace {

using at::Tensor;
using zs::kernel::Kernels;

/// B samples of T tokens, H heads of queries and K of keys and values, of D numbers; C width, I inner width.
struct Shape {
  std::int64_t B, T, H, K, D, C, I;
};

/// The output of a layer of `inputs`, of which the first is what it is applied to.
using Layer = std::function<Tensor(const Kernels&, const std::vector<Tensor>& inputs)>;

struct Case {
  std::string name;
  std::vector<Tensor> inputs;  ///< float32
  Layer layer;
  bool differentiates_first = true;
  double far = 0.02;  ///< from float32, of bfloat16, at most
};

int number = 0, failed = 0;

void result(bool ok, const std::string& name) {
  std::printf("%sok %d %s\n", ok ? "" : "not ", ++number, name.c_str());
  std::fflush(stdout);
  failed += !ok;
}

Tensor random(std::vector<std::int64_t> sizes, double scale = 1) {
  return at::randn(sizes, at::TensorOptions(at::kFloat).device(at::kCUDA)).mul_(scale);
}

/// The tensors one after another in one buffer, as a unit has its parameters, with gradients in another that begin as
/// `gradient`.
struct Flat {
  std::vector<Tensor> leaves;
  Flat(const std::vector<Tensor>& tensors, double gradient) {
    std::int64_t numel = 0;
    for (const Tensor& tensor : tensors) numel += tensor.numel();
    const Tensor values = at::empty({numel}, tensors[0].options()), sums = at::full_like(values, gradient);
    std::int64_t at = 0;
    for (const Tensor& tensor : tensors) {
      const auto view = [&](const Tensor& x) { return x.narrow(0, at, tensor.numel()).view(tensor.sizes()); };
      view(values).copy_(tensor);
      leaves.push_back(view(values).detach().requires_grad_(true));
      leaves.back().mutable_grad() = view(sums);
      at += tensor.numel();
    }
  }
};

std::vector<Tensor> in_type(const std::vector<Tensor>& inputs, at::ScalarType type) {
  std::vector<Tensor> converted;
  for (const Tensor& input : inputs) converted.push_back(input.to(type));
  return converted;
}

/// The gradient of y that gradients are made of: random, since sums over tokens of a regular one cancel, so that
/// rounding is most of what is left; and of 16 bits, the same for every type.
Tensor direction(const Tensor& y) {
  static std::map<std::int64_t, Tensor> made;
  Tensor& drawn = made[y.numel()];
  if (!drawn.defined()) drawn = at::randn({y.numel()}, y.options().dtype(at::kFloat)).to(at::kBFloat16);
  return drawn.view(y.sizes()).to(y.scalar_type());
}

/// Output, then gradients by every input, each tensor by itself.
std::vector<Tensor> apart(const Case& c, const Kernels& kernels, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_(true));
  const Tensor y = c.layer(kernels, leaves);
  std::vector<Tensor> wanted(leaves.begin() + !c.differentiates_first, leaves.end());
  std::vector<Tensor> results = torch::autograd::grad({y}, wanted, {direction(y)});
  results.insert(results.begin(), y.detach());
  return results;
}

/// The same of parameters in a flat buffer, whose gradients begin as 0.
std::vector<Tensor> together(const Case& c, const Kernels& kernels, const std::vector<Tensor>& inputs) {
  const Tensor x = inputs[0].clone().requires_grad_(c.differentiates_first);
  const Flat flat({inputs.begin() + 1, inputs.end()}, 0);
  std::vector<Tensor> leaves = flat.leaves;
  leaves.insert(leaves.begin(), x);
  const Tensor y = c.layer(kernels, leaves);
  torch::autograd::backward({y}, {direction(y)});
  std::vector<Tensor> results = {y.detach()};
  for (std::size_t i = !c.differentiates_first; i < leaves.size(); ++i) results.push_back(leaves[i].grad());
  return results;
}

double distance(const Tensor& a, const Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).norm() / b.to(at::kDouble).norm()).item<double>();
}
double most(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = distance(got[i], expected[i]);
    if (!(d <= most)) most = d;
  }
  return most;
}
bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

double milliseconds(const std::function<void()>& call) {
  constexpr int kCalls = 10;
  const auto now = [] {
    at::zeros({1}, at::TensorOptions(at::kFloat).device(at::kCUDA)).item<float>();
    return std::chrono::steady_clock::now();
  };
  call();
  const auto begin = now();
  for (int i = 0; i < kCalls; ++i) call();
  return std::chrono::duration<double, std::milli>(now() - begin).count() / kCalls;
}

/// Layers with parts that Llama does not have. Each adds parameters to the inputs of Llama's layer.
std::vector<Case> parts(const Shape& s, const std::vector<Tensor>& attention, const std::vector<Tensor>& gated,
                        const Tensor& cos_TR, const Tensor& sin_TR) {
  using zs::kernel::NormScale;
  const auto with = [](std::vector<Tensor> inputs, const std::vector<Tensor>& more) {
    inputs.insert(inputs.end(), more.begin(), more.end());
    return inputs;
  };
  const auto attends = [=](const Kernels& k, const auto& in, const auto& change) {
    zs::kernel::AttentionLayer layer{in[1], 1e-5, {in[2]}, {in[3]}, {in[4]}, {in[5]}, cos_TR, sin_TR, {.heads = s.H}};
    change(layer);
    return k.attention_layer(in[0], layer);
  };
  const std::int64_t E = s.H * s.D, F = s.K * s.D, R = 8;
  const auto low = [&](std::int64_t out, std::int64_t in) {
    return std::vector<Tensor>{random({R, in}, 1 / std::sqrt(static_cast<double>(in))), random({out, R}, 0.1)};
  };
  const std::vector<Tensor> of_q = low(E, s.C), of_k = low(F, s.C), of_v = low(F, s.C), of_o = low(s.C, E);
  std::vector<Case> list = {
      {"attention layer, norms of heads, before and after, a window, a scale",
       with(attention, {random({s.D}, 0.2), random({s.D}, 0.2), random({s.C}, 0.2)}),
       [=](const Kernels& k, const auto& in) {
         return attends(k, in, [&](auto& layer) {
           layer.norm_C.scale = NormScale::plus_one;
           layer.q_norm = {in[6], NormScale::plus_one}, layer.k_norm = {in[7], NormScale::plus_one};
           layer.post_norm_C = {in[8], NormScale::plus_one};
           layer.attending.window = 19, layer.attending.scale = 0.1;
         });
       }},
      {"attention layer, norms of all heads, one after it alone", with(attention, {random({E}), random({F})}),
       [=](const Kernels& k, const auto& in) {
         return attends(k, in, [&](auto& layer) {
           layer.post_norm_C = {std::exchange(layer.norm_C, {}).weight, NormScale::wide};
           layer.q_norm = {in[6], NormScale::wide}, layer.k_norm = {in[7], NormScale::wide};
         });
       }},
      // A constant that is added to all keys changes no attention, so that half of the gradient of their bias is 0 but
      // for rounding.
      {"attention layer, biases, a part of each head turned",
       with(attention, {random({E}), random({F}), random({F}), random({s.C})}),
       [=](const Kernels& k, const auto& in) {
         return attends(k, in, [&](auto& layer) {
           layer.q.bias_O = in[6], layer.k.bias_O = in[7], layer.v.bias_O = in[8], layer.o.bias_O = in[9];
           layer.cos_TR = cos_TR.narrow(1, 0, s.D / 4).contiguous();
           layer.sin_TR = sin_TR.narrow(1, 0, s.D / 4).contiguous();
         });
       },
       true, 0.03},
      {"attention layer, a cap", attention,
       [=](const Kernels& k, const auto& in) { return attends(k, in, [&](auto& layer) { layer.attending.cap = 2; }); }},
      {"attention layer, a cap and a window", attention,
       [=](const Kernels& k, const auto& in) {
         return attends(k, in, [&](auto& layer) { layer.attending.cap = 2, layer.attending.window = s.T / 3; });
       }},
      // Few sinks have gradients that are sums of many, whose rounding is large: LibTorch's is 0.06 at times.
      {"attention layer, sinks", with(attention, {attention[1].narrow(0, 0, s.H)}),
       [=](const Kernels& k, const auto& in) {
         return attends(k, in, [&](auto& layer) { layer.attending.sinks_H = in[6]; });
       },
       true, 0.1},
      {"attention layer, sinks and a window", with(attention, {random({s.H})}),
       [=](const Kernels& k, const auto& in) {
         return attends(k, in, [&](auto& layer) { layer.attending.sinks_H = in[6], layer.attending.window = 33; });
       }},
      {"attention layer, adapters", with(with(with(with(attention, of_q), of_k), of_v), of_o),
       [=](const Kernels& k, const auto& in) {
         return attends(k, in, [&](auto& layer) {
           layer.q.adapter = {in[6], in[7], 2}, layer.k.adapter = {in[8], in[9], 2};
           layer.v.adapter = {in[10], in[11], 2}, layer.o.adapter = {in[12], in[13], 2};
         });
       }},
      {"gated layer, GELU, norms before and after", with(gated, {random({s.C}, 0.2)}),
       [](const Kernels& k, const auto& in) {
         return k.gated_layer(in[0], {{in[1], NormScale::plus_one},
                                      1e-5,
                                      {in[2]},
                                      {in[3]},
                                      {in[4]},
                                      zs::kernel::Activation::gelu_tanh,
                                      {in[5], NormScale::plus_one}});
       }},
      {"gated layer, biases and an adapter", with(with(gated, low(s.I, s.C)), {random({s.I}), random({s.C})}),
       [](const Kernels& k, const auto& in) {
         return k.gated_layer(in[0], {in[1], 1e-5, {in[2], in[7], {in[5], in[6], 2}}, {in[3]}, {in[4], in[8]}});
       }},
  };
  if (s.T > 4000) {  // LibTorch's scores with caps, windows or sinks would not fit into memory
    std::erase_if(list, [](const Case& c) { return c.name.find("cap") < 99 || c.name.find("window") < 99; });
  }
  return list;
}

/// The networks of four experts, of which one has no rows and one a single row, in both forms, their matrices behind
/// each other as in a unit; and what adds up the results of three experts of each token.
std::vector<Case> experts(const Shape& s) {
  const std::int64_t E = 4, K = 3, C = s.C, I = s.I / 2, N = s.B * s.T;
  const double by_C = 1 / std::sqrt(static_cast<double>(C)), by_I = 1 / std::sqrt(static_cast<double>(I));
  const auto run = [=](const Kernels& k, const std::vector<Tensor>& in) {
    const bool alternates = in.size() > 2;
    std::vector<zs::kernel::Expert> mlps;
    for (std::int64_t e = 0; e < E; ++e) {
      const auto part = [&](std::int64_t begin, std::int64_t rows, std::int64_t columns) {
        return in[1].narrow(0, (3 * e + begin) * C * I, rows * columns).view({rows, columns});
      };
      if (alternates)
        mlps.push_back({part(0, C, 2 * I), {}, part(2, I, C), in[2].select(0, e), in[3].select(0, e)});
      else
        mlps.push_back({.gate = part(0, I, C), .up = part(1, I, C), .down = part(2, C, I)});
    }
    return zs::kernel::gated_experts(in[0].view({N, C}), std::vector<std::int64_t>{N / 2, 0, 1, N - N / 2 - 1}, mlps,
                                     {alternates, 1.702, 1.5}, k.experts ? *k.experts : zs::kernel::plain_parts());
  };
  const Tensor x = random({s.B, s.T, C}),
               weights = at::cat({random({E, 2 * C * I}, by_C), random({E, C * I}, by_I)}, 1).view({-1}),
               place_R = at::randperm(N * K, at::TensorOptions(at::kLong).device(at::kCUDA));
  return {
      {"experts' networks", {x, weights}, run},
      // A gate near its limit has a gradient or none, as its product is rounded.
      {.name = "experts' networks, gates and ups that alternate, biases",
       .inputs = {x, weights, random({E, 2 * I}), random({E, C})},
       .layer = run,
       .far = 0.05},
      {"the sum of a token's experts", {x, random({N * K, C}), random({N, K})}, [=](const Kernels& k, const auto& in) {
         const Tensor x_NC = in[0].view({N, C}), weights_NK = in[2].to(at::kFloat);
         if (k.experts) return k.experts->combine(x_NC, in[1], place_R, weights_NK);
         const Tensor y_NKC = in[1].index_select(0, place_R).view({N, K, C});
         return x_NC + (y_NKC.to(at::kFloat) * weights_NK.unsqueeze(2)).sum(1).to(x_NC.scalar_type());
       }}};
}

std::vector<Case> cases(const Shape& s) {
  const std::int64_t E = s.H * s.D, F = s.K * s.D;
  const Tensor angles_TR =
      at::outer(at::arange(s.T, at::kFloat), at::pow(1e4, -at::arange(0, s.D, 2, at::kFloat) / s.D));
  const Tensor cos_TR = angles_TR.cos().to(at::kCUDA), sin_TR = angles_TR.sin().to(at::kCUDA);
  const double by_C = 1 / std::sqrt(static_cast<double>(s.C)), by_I = 1 / std::sqrt(static_cast<double>(s.I));
  const Tensor x = random({s.B, s.T, s.C}), norm = random({s.C});
  const std::int64_t V = 1000;
  const Tensor tokens = at::randint(0, 40, {s.B, s.T}, at::TensorOptions(at::kLong).device(at::kCUDA));
  std::vector<Case> list = {
      {"RMS norm",
       {x, norm},
       [](const Kernels& k, const auto& in) {
         const auto made = k.rms_norm(in[0], in[1], 1e-5);
         return made.x * 0.5 + made.y;
       }},
      {"attention layer",
       {x, norm, random({E, s.C}, by_C), random({F, s.C}, by_C), random({F, s.C}, by_C), random({s.C, E}, by_C)},
       [=](const Kernels& k, const auto& in) {
         return k.attention_layer(in[0], {in[1], 1e-5, {in[2]}, {in[3]}, {in[4]}, {in[5]}, cos_TR, sin_TR, s.H, 0, 0});
       }},
      {"gated layer",
       {x, norm, random({s.I, s.C}, by_C), random({s.I, s.C}, by_C), random({s.C, s.I}, by_I)},
       [](const Kernels& k, const auto& in) {
         return k.gated_layer(in[0], {in[1], 1e-5, {in[2]}, {in[3]}, {in[4]}});
       }},
      {"attention of samples",
       {random({s.B, s.T, E}), random({s.B, s.T, F}), random({s.B, s.T, F})},
       [=](const Kernels& k, const auto& in) { return k.grouped_attention(in[0], in[1], in[2], {.heads = s.H}); }},
      {"embedding of 40 tokens",
       {x, random({V, s.C})},
       [=](const Kernels& k, const auto& in) { return k.embedding(in[1], tokens); },
       false},
      {"loss, a cap",
       {random({s.B * s.T, s.C}), random({V, s.C}, 4 * by_C)},
       [=](const Kernels& k, const auto& in) {
         const Tensor loss = k.loss(in[0], in[1], tokens.view({-1}), 3);
         return at::stack({loss, loss * 3});
       }},
  };
  const std::vector<Tensor> attention = list[1].inputs, gated = list[2].inputs;
  for (Case& c : experts(s)) list.push_back(std::move(c));
  for (Case& c : parts(s, attention, gated, cos_TR, sin_TR)) list.push_back(std::move(c));
  return list;
}

// ---- products of 8 bits ---------------------------------------------------------------------------------------------
zs::kernel::Scales scales = zs::kernel::Scales::tensorwise;  // of what follows

/// Rounded to 8 bits, as LibTorch rounds, and float32 again: by one scale; or by one, a power of two, for all numbers
/// that a product adds up over dimension `summed`.
Tensor rounded(const Tensor& x, bool gradient, int summed) {
  const Tensor wide = x.to(at::kFloat), size = wide.abs();
  if (scales == zs::kernel::Scales::rowwise) {
    const Tensor exponent = std::get<1>(at::frexp(at::full({}, 448, wide.options()) / size.amax({summed}, true))) - 1;
    const Tensor scale = at::ldexp(at::ones_like(exponent, wide.options()), exponent);
    return wide.mul(scale).to(at::kFloat8_e4m3fn).to(at::kFloat).div(scale);
  }
  const Tensor scale = at::full({}, gradient ? 57344 : 448, wide.options()).div(size.max());
  return wide.mul(scale).to(gradient ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn).to(at::kFloat).mul(scale.reciprocal());
}

/// x times weight_IO plus bias_O, of rounded factors, forward and backward.
struct Rounded : torch::autograd::Function<Rounded> {
  using Variables = torch::autograd::variable_list;
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& x, const Tensor& weight_IO,
                        const std::optional<Tensor>& bias_O) {
    ctx->save_for_backward({x, weight_IO});
    ctx->saved_data["bias"] = bias_O.has_value();
    const Tensor y = at::matmul(rounded(x, false, -1), rounded(weight_IO, false, 0));
    return (bias_O ? y + bias_O->to(at::kFloat) : y).to(x.scalar_type());
  }
  static Variables backward(torch::autograd::AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const auto rows = [](const Tensor& x) { return x.reshape({-1, x.size(-1)}); };
    const Tensor dy = gradients[0], x = rows(saved[0]);
    const auto narrow = [&](const Tensor& x) { return x.to(saved[0].scalar_type()); };
    return {narrow(at::matmul(rounded(dy, true, -1), rounded(saved[1], false, 1).t())),
            narrow(at::mm(rounded(x, false, 0).t(), rounded(rows(dy), true, 0))),
            ctx->saved_data["bias"].toBool() ? narrow(rows(dy).to(at::kFloat).sum(0)) : Tensor()};
  }
};

/// LibTorch's kernels, of factors that are rounded.
Kernels rounding() {
  Kernels bare = zs::kernel::plain();
  bare.linear = [](const Tensor& x, const Tensor& weight_IO, const Tensor& bias_O) {
    return Rounded::apply(x, weight_IO, std::optional<Tensor>(bias_O));
  };
  bare.project = [](const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O) {
    return Rounded::apply(x, weight_OI.t(), bias_O.defined() ? std::optional<Tensor>(bias_O) : std::nullopt);
  };
  bare.attention_layer = nullptr, bare.gated_layer = nullptr;
  return bare;
}

std::vector<Case> float8_cases(const Shape& s) {
  const double by_C = 1 / std::sqrt(static_cast<double>(s.C));
  std::vector<Case> list = {{"linear layer",
                             {random({s.B, s.T, s.C}), random({s.C, s.I}, by_C), random({s.I})},
                             [](const Kernels& k, const auto& in) { return k.linear(in[0], in[1], in[2]); }}};
  for (Case& c : cases(s)) {
    if (c.name != "attention layer" && c.name != "gated layer") continue;
    const Layer layer = c.layer;
    c.layer = [layer](const Kernels& k, const auto& in) {
      if (k.attention_layer) return layer(k, in);
      static const Kernels* by;  // what a composition is made of
      by = &k;
      Kernels composed = k;
      composed.attention_layer = [](const Tensor& x, const auto& call) {
        return zs::kernel::attention_layer(*by, x, call);
      };
      composed.gated_layer = [](const Tensor& x, const auto& call) { return zs::kernel::gated_layer(*by, x, call); };
      return layer(composed, in);
    };
    list.push_back(c);
  }
  return list;
}

/// One product has the same factors as LibTorch's, so results differ by their own rounding and the order of sums; in
/// layers one scale serves the weights that are multiplied together, so there both are as far from float32.
void test_float8(const Kernels& fused, const Kernels& plain, int repeats, zs::kernel::Scales how) {
  const Kernels emulated = rounding();
  scales = how;
  for (const Shape& s : {Shape{2, 48, 4, 2, 64, 256, 384}, Shape{1, 160, 4, 1, 128, 512, 1040},
                         Shape{4, 2048, 32, 8, 64, 2048, 8192}, Shape{2, 2048, 32, 8, 128, 4096, 14336}}) {
    for (const Case& c : float8_cases(s)) {
      const bool large = s.T > 1000;
      const std::vector<Tensor> inputs = in_type(c.inputs, at::kBFloat16);
      const std::vector<Tensor> expected = apart(c, plain, in_type(inputs, at::kFloat)),
                                like = apart(c, emulated, inputs);
      zs::kernel::use_float8(how);
      const std::vector<Tensor> got = apart(c, fused, inputs);
      const double far = most(got, expected), as_far = most(like, expected), apart_by = most(got, like);
      char said[512];
      std::snprintf(said, sizeof said, "8 bits %s: %s, B %ld T %ld H %ld K %ld D %ld C %ld I %ld",
                    how == zs::kernel::Scales::rowwise ? "by row" : "by matrix", c.name.c_str(), s.B, s.T, s.H, s.K,
                    s.D, s.C, s.I);
      const std::string name = said;
      std::snprintf(said, sizeof said, ": %.2g from float32 (LibTorch's rounding %.2g), %.2g from that", far, as_far,
                    apart_by);
      const bool single = c.name == "linear layer";
      result(far > 0.01 && far <= 1.25 * as_far && (!single || apart_by <= 0.01), name + said);
      bool repeated = same(got, together(c, fused, inputs));
      for (int i = 0; i < repeats; ++i) repeated = repeated && same(got, apart(c, fused, inputs));
      result(repeated, name + ": the same bits in a flat buffer, and " + std::to_string(repeats) + " times");
      if (large) {
        const double narrow = milliseconds([&] { together(c, fused, inputs); });
        zs::kernel::use_float8(zs::kernel::Scales::none);
        std::printf("# %s: %.3f ms, of 16 bits %.3f\n", name.c_str(), narrow,
                    milliseconds([&] { together(c, fused, inputs); }));
      }
      zs::kernel::use_float8(zs::kernel::Scales::none);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 20;
  const std::string named = argc > 2 ? argv[2] : "";
  if (!zs::device::cuda::driver_is_there()) {
    std::puts("1..0 # skip this machine has no GPU");
    return 0;
  }
  if (const std::string why = zs::device::cuda::load(); !why.empty()) {
    std::fprintf(stderr, "bench/kernels: %s\n", why.c_str());
    return 2;
  }
  zs::device::cuda::backend().use(0);
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  const Kernels &fused = zs::kernel::chosen(true, at::kCUDA), &plain = zs::kernel::plain();
  // Few tokens, rows that fill no block, heads that share keys and values or not; Llama-3.2-1B's block, and 8B's; a
  // sample so long that attention's backward is made of tiles, the last ones of fewer tokens.
  for (const Shape& s : {Shape{1, 37, 4, 2, 64, 256, 384}, Shape{3, 200, 6, 6, 32, 192, 512},
                         Shape{2, 130, 4, 1, 128, 512, 1024}, Shape{4, 2048, 32, 8, 64, 2048, 8192},
                         Shape{2, 2048, 32, 8, 128, 4096, 14336}, Shape{1, 10000, 32, 8, 64, 2048, 2048}}) {
    if (!named.empty() && s.T > 1000) continue;
    for (const Case& c : cases(s)) {
      if (c.name.find(named) == std::string::npos) continue;
      for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
        const bool large = s.T > 1000, narrow = type == at::kBFloat16;
        if (large && !narrow) continue;
        const std::vector<Tensor> inputs = in_type(c.inputs, type);
        const std::vector<Tensor> expected = apart(c, plain, in_type(inputs, at::kFloat));
        const std::vector<Tensor> got = apart(c, fused, inputs);
        const double far = most(got, expected), plain_far = most(apart(c, plain, inputs), expected);
        char said[512];
        std::snprintf(said, sizeof said, "%s, %s, B %ld T %ld H %ld K %ld D %ld C %ld I %ld", c.name.c_str(),
                      at::toString(type), s.B, s.T, s.H, s.K, s.D, s.C, s.I);
        std::string name = said;
        std::snprintf(said, sizeof said, ": %.2g from float32 (LibTorch's %.2g)", far, plain_far);
        // In float32 the sums have other orders; in bfloat16 each result is rounded once or more. Where LibTorch's own
        // rounding is farther than the bound (a limit is met or not, as a product is rounded), its distance is the
        // bound.
        result(far <= (narrow ? std::max(c.far, plain_far) : 1e-5) && (!narrow || far <= 1.5 * plain_far + 1e-3),
               name + said);
        bool repeated = same(got, together(c, fused, inputs));
        for (int i = 0; i < repeats; ++i) repeated = repeated && same(got, apart(c, fused, inputs));
        result(repeated, name + ": the same bits in a flat buffer, and " + std::to_string(repeats) + " times");
        if (!large) continue;
        const double ours = milliseconds([&] { together(c, fused, inputs); }),
                     theirs = milliseconds([&] { together(c, plain, inputs); });
        std::printf("# %s: %.3f ms, LibTorch's %.3f\n", name.c_str(), ours, theirs);
      }
    }
  }
  if (named.empty()) compare_fingerprints(result);
  if (named.empty() || named == "nf4") compare_nf4(result);
  for (const auto how : {zs::kernel::Scales::tensorwise, zs::kernel::Scales::rowwise})
    if (named.empty()) test_float8(fused, plain, repeats, how);
  std::printf("1..%d\n", number);
  return failed > 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "kernel/experts.hpp"

#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "kernel/gated_experts.hpp"
#include "unit/random.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;

Tensor random(std::vector<std::int64_t> shape, std::uint64_t key, double scale = 1) {
  return at::randn(shape, unit::generator(key)).mul_(scale);
}

constexpr std::int64_t C = 24, I = 40;

/// Norm, router, its bias, then what each expert has: 3 matrices, or 2 and 2 biases.
struct Case {
  std::int64_t experts, chosen;
  Routing routing;
  bool stacked = false;

  std::vector<Tensor> parameters() const {
    std::vector<Tensor> made = {random({C}, 1), random({experts, C}, 2), random({experts}, 3)};
    for (std::int64_t e = 0; e < experts; ++e) {
      const auto key = static_cast<std::uint64_t>(10 * e);
      if (stacked) {
        made.push_back(random({C, 2 * I}, key + 4, 0.3)), made.push_back(random({2 * I}, key + 5, 0.3));
        made.push_back(random({I, C}, key + 6, 0.3)), made.push_back(random({C}, key + 7, 0.3));
      } else {
        made.push_back(random({I, C}, key + 4, 0.3)), made.push_back(random({I, C}, key + 5, 0.3));
        made.push_back(random({C, I}, key + 6, 0.3));
      }
    }
    return made;
  }
  ExpertsLayer layer(const std::vector<Tensor>& in) const {
    ExpertsLayer made{};
    made.norm_C = in[0], made.epsilon = 1e-5;
    made.router.weight_OI = in[1];
    if (stacked) made.router.bias_O = in[2];
    made.chosen = chosen, made.routing = routing;
    made.alpha = 1.702, made.limit = 0.7;
    for (std::size_t i = 3; i < in.size(); i += stacked ? 4 : 3) {
      if (stacked)
        made.experts.push_back(
            {.gate = in[i], .up = {}, .down = in[i + 2], .gate_bias = in[i + 1], .down_bias = in[i + 3]});
      else
        made.experts.push_back({.gate = in[i], .up = in[i + 1], .down = in[i + 2]});
    }
    return made;
  }
};

/// Every expert of every token, in float64, most with the weight 0.
Tensor dense(const Tensor& x_BTC, const ExpertsLayer& layer) {
  const auto wide = [](const Tensor& x) { return x.to(at::kDouble); };
  const Tensor x = wide(x_BTC);
  const Tensor in_BTC = x * at::rsqrt(x.pow(2).mean(-1, true) + layer.epsilon) * wide(layer.norm_C.weight);
  Tensor logits = at::matmul(in_BTC, wide(layer.router.weight_OI).t());
  if (layer.router.bias_O.defined()) logits = logits + wide(layer.router.bias_O);
  const Tensor least = std::get<0>(logits.detach().sort(-1, true)).narrow(-1, layer.chosen - 1, 1);
  const Tensor taken = logits.detach().ge(least).to(at::kDouble);
  Tensor weights = at::softmax(logits, -1) * taken;
  if (layer.routing != Routing::all) weights = weights / weights.sum(-1, true);
  Tensor sum = x;
  for (std::size_t e = 0; e < layer.experts.size(); ++e) {
    const Expert& expert = layer.experts[e];
    Tensor made;
    if (expert.up.defined()) {
      made = at::matmul(at::silu(at::matmul(in_BTC, wide(expert.gate).t())) * at::matmul(in_BTC, wide(expert.up).t()),
                        wide(expert.down).t());
    } else {
      const Tensor both = at::matmul(in_BTC, wide(expert.gate)) + wide(expert.gate_bias);
      const Tensor gate = both.slice(-1, 0, c10::nullopt, 2).clamp_max(layer.limit),
                   up = both.slice(-1, 1, c10::nullopt, 2).clamp(-layer.limit, layer.limit);
      made = at::matmul((up + 1) * gate * (gate * layer.alpha).sigmoid(), wide(expert.down)) + wide(expert.down_bias);
    }
    sum = sum + made * weights.select(-1, static_cast<std::int64_t>(e)).unsqueeze(-1);
  }
  return sum.to(at::kFloat);
}

std::vector<Tensor> results(const Case& c, const std::vector<Tensor>& inputs,
                            const std::function<Tensor(const Tensor&, const ExpertsLayer&)>& compute) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_(true));
  const Tensor y = compute(leaves[0], c.layer({leaves.begin() + 1, leaves.end()}));
  std::vector<Tensor> used;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (i != 3 || c.stacked) used.push_back(leaves[i]);
  }
  std::vector<Tensor> made = torch::autograd::grad({y}, used, {random(y.sizes().vec(), 99).to(y.scalar_type())});
  made.insert(made.begin(), y.detach());
  return made;
}

double distance(const Tensor& a, const Tensor& b) {
  const double size = b.to(at::kDouble).norm().item<double>();
  const double apart = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return size > 0 ? apart / size : apart;
}

const std::vector<Case> kCases = {{4, 2, Routing::normalised},   {8, 3, Routing::all},
                                  {5, 5, Routing::normalised},   {3, 1, Routing::all},
                                  {4, 2, Routing::chosen, true}, {40, 4, Routing::chosen, true}};

}  // namespace

TEST_CASE(
    "experts: what all experts would make in float64, of those that are chosen, with gradients; plain and fused") {
  for (const Case& c : kCases) {
    CAPTURE(c.experts);
    CAPTURE(c.chosen);
    std::vector<Tensor> inputs = c.parameters();
    inputs.insert(inputs.begin(), random({2, 7, C}, 5));
    const auto expected = results(c, inputs, dense);
    for (const Kernels* const kernels : {&plain(), &fused()}) {
      const auto got = results(c, inputs, [&](const Tensor& x, const ExpertsLayer& layer) {
        return experts_layer(*kernels, x, layer).y_BTC;
      });
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK(got[i].sizes() == expected[i].sizes());
        CHECK(distance(got[i], expected[i]) < 3e-6);
      }
    }
  }
}

TEST_CASE("experts: sorted or one by one, the same bits, in every format, also of one token and of none") {
  for (const Case& c : kCases) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const Kernels* const kernels : {&plain(), &fused()}) {
        for (const std::int64_t tokens : {1, 3, 14}) {
          CAPTURE(c.experts);
          CAPTURE(tokens);
          std::vector<Tensor> inputs = c.parameters();
          inputs.insert(inputs.begin(), random({1, tokens, C}, 5));
          for (Tensor& input : inputs) input = input.to(type);
          const auto bits = [&](bool one_by_one) {
            return results(c, inputs, [&](const Tensor& x, ExpertsLayer layer) {
              layer.one_by_one = one_by_one;
              return experts_layer(*kernels, x, layer).y_BTC;
            });
          };
          const auto sorted = bits(false), one = bits(true);
          for (std::size_t i = 0; i < sorted.size(); ++i) {
            CAPTURE(i);
            const bool same_type = sorted[i].scalar_type() == type;
            CHECK(same_type);
            CHECK(at::equal(sorted[i], one[i]));
          }
        }
      }
    }
  }
}

TEST_CASE("experts: those of a GPU have the results and gradients of one after another, also in preset gradients") {
  for (const bool stacked : {false, true}) {
    for (const bool preset : {false, true}) {
      CAPTURE(stacked);
      CAPTURE(preset);
      const std::int64_t counts[] = {5, 0, 1, 4, 2};
      const Case c{5, 2, Routing::normalised, stacked};
      std::vector<Tensor> fused = c.parameters(), others;
      const Tensor rows_RC = random({12, C}, 7).requires_grad_(true), dy_RC = random({12, C}, 8);
      for (Tensor& each : fused) {
        others.push_back(each.clone().requires_grad_(true));
        each.requires_grad_(true);
        if (preset) each.mutable_grad() = at::ones_like(each);
      }
      const ExpertsLayer layer = c.layer(fused), plain_layer = c.layer(others);
      std::vector<Tensor> made;
      std::int64_t begin = 0;
      for (std::size_t e = 0; e < 5; begin += counts[e++]) {
        const Expert& expert = plain_layer.experts[e];
        const Tensor x = rows_RC.narrow(0, begin, counts[e]);
        if (stacked) {
          const Tensor pre = at::addmm(expert.gate_bias, x, expert.gate),
                       gate = pre.slice(1, 0, 2 * I, 2).clamp_max(layer.limit),
                       up = pre.slice(1, 1, 2 * I, 2).clamp(-layer.limit, layer.limit);
          made.push_back(at::addmm(expert.down_bias, (up + 1) * gate * at::sigmoid(gate * layer.alpha), expert.down));
        } else {
          made.push_back(at::mm(at::silu(at::mm(x, expert.gate.t())) * at::mm(x, expert.up.t()), expert.down.t()));
        }
      }
      const Tensor expected = at::cat(made), y = gated_experts(rows_RC, counts, layer.experts,
                                                               {stacked, layer.alpha, layer.limit}, plain_parts());
      CHECK(distance(y, expected) < 1e-6);
      torch::autograd::backward({expected}, {dy_RC});
      const Tensor drows = rows_RC.grad().clone();
      rows_RC.mutable_grad() = Tensor();
      torch::autograd::backward({y}, {dy_RC});
      CHECK(distance(rows_RC.grad(), drows) < 1e-6);
      for (std::size_t i = 3; i < fused.size(); ++i)
        CHECK(distance(fused[i].grad() - (preset ? 1 : 0), others[i].grad()) < 1e-6);
    }
  }
}

TEST_CASE("experts: of equal logits the lowest number is chosen; weights are those of the routing") {
  const Tensor logits = at::tensor({1.0F, 3.0F, 3.0F, 2.0F, 3.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F}).view({2, 5});
  for (const Routing routing : {Routing::all, Routing::normalised, Routing::chosen}) {
    const Routes taken = routes(logits, 2, routing);
    CHECK(at::equal(taken.experts_NK, at::tensor({1, 2, 0, 1}, at::kLong).view({2, 2})));
    const double whole = routing == Routing::all ? 0.4 : 1;
    CHECK(taken.weights_NK.select(0, 1).sum().item<double>() == doctest::Approx(whole));
    CHECK(taken.weights_NK.select(0, 1)[0].item<double>() == doctest::Approx(whole / 2));
  }
  // Among many, in random order: the choice does not depend on how it sorts.
  const Tensor many = at::randint(0, 3, {200, 128}, unit::generator(3), at::TensorOptions(at::kFloat));
  const Tensor chosen = routes(many, 8, Routing::all).experts_NK;
  for (std::int64_t n = 0; n < 200; ++n) {
    std::vector<std::int64_t> expected;
    for (const float level : {2.0F, 1.0F}) {
      for (std::int64_t e = 0; e < 128 && expected.size() < 8; ++e) {
        if (many[n][e].item<float>() == level) expected.push_back(e);
      }
    }
    CHECK(at::equal(chosen[n], at::tensor(expected, at::kLong)));
  }
}

TEST_CASE("experts: one without tokens has a gradient of zeros") {
  const Case c{4, 1, Routing::all};
  std::vector<Tensor> inputs = c.parameters();
  inputs[1].narrow(0, 1, 3).fill_(0), inputs[1].select(0, 0).fill_(0);
  inputs.insert(inputs.begin(), random({1, 6, C}, 5));  // all logits are equal: all tokens go to expert 0
  for (const Kernels* const kernels : {&plain(), &fused()}) {
    const auto got = results(
        c, inputs, [&](const Tensor& x, const ExpertsLayer& layer) { return experts_layer(*kernels, x, layer).y_BTC; });
    // Output, x, norm, router, then three matrices an expert.
    for (std::size_t i = 4; i < got.size(); ++i) CHECK((got[i].abs().max().item<double>() > 0) == (i < 7));
  }
}

}  // namespace zs::kernel

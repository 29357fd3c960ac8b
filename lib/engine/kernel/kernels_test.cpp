// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernels.hpp"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "kernel/product.hpp"
#include "kernel/vector.hpp"
#include "unit/arithmetic.hpp"
#include "unit/random.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;
using Layer = std::function<Tensor(const Kernels&, const std::vector<Tensor>&)>;

at::Tensor random(std::vector<std::int64_t> shape, std::uint64_t key, double scale = 1) {
  return at::randn(shape, unit::generator(key)).mul_(scale);
}

/// Output and gradients by every input, of the sum of the output times fixed weights.
std::vector<Tensor> results(const Kernels& kernels, const Layer& layer, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_(true));
  const Tensor y = layer(kernels, leaves);
  const Tensor dy = y.dim() == 0 ? at::full_like(y, 0.5) : random(y.sizes().vec(), 99).to(y.scalar_type());
  std::vector<Tensor> made = torch::autograd::grad({y}, leaves, {dy});
  made.insert(made.begin(), y.detach());
  return made;
}

double distance(const Tensor& a, const Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).norm() / b.to(at::kDouble).norm()).item<double>();
}

/// Both in bfloat16 are near to float32 from the same numbers, and what comes of it is bfloat16, but for a loss.
void agree_in_bfloat16(const Layer& layer, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> narrow, wide;
  for (const Tensor& input : inputs) {
    narrow.push_back(input.to(at::kBFloat16));
    wide.push_back(narrow.back().to(at::kFloat));
  }
  const auto expected = results(plain(), layer, wide);
  for (const Kernels* const kernels : {&plain(), &fused()}) {
    const bool is_fused = kernels == &fused();
    CAPTURE(is_fused);
    const auto got = results(*kernels, layer, narrow);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      const bool is_loss = i == 0 && got[i].dim() == 0;
      const bool right_type = got[i].scalar_type() == (is_loss ? at::kFloat : at::kBFloat16);
      CHECK(right_type);
      CHECK(distance(got[i], expected[i]) < 0.02);
    }
  }
}

/// Fused and plain agree to rounding, and the fused gradient arrives in a preset .grad as well.
void agree(const Layer& layer, const std::vector<Tensor>& inputs) {
  const auto expected = results(plain(), layer, inputs), got = results(fused(), layer, inputs);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i].sizes() == expected[i].sizes());
    CHECK(distance(got[i], expected[i]) < 2e-6);
  }
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) {
    leaves.push_back(input.clone().requires_grad_(true));
    leaves.back().mutable_grad() = at::ones_like(input);
  }
  const Tensor y = layer(fused(), leaves);
  torch::autograd::backward({y}, {y.dim() == 0 ? at::full_like(y, 0.5) : random(y.sizes().vec(), 99)});
  for (std::size_t i = 0; i < leaves.size(); ++i) CHECK(distance(leaves[i].grad(), expected[i + 1] + 1) < 2e-6);
  agree_in_bfloat16(layer, inputs);
}

TEST_CASE("kernel: linear") {
  agree([](const Kernels& k, const auto& in) { return k.linear(in[0], in[1], in[2]); },
        {random({2, 5, 24}, 1), random({24, 40}, 2), random({40}, 3)});
}

TEST_CASE("kernel: linear added to a residual") {
  agree([](const Kernels& k, const auto& in) { return k.linear_add(in[0], in[1], in[2], in[3]); },
        {random({2, 5, 24}, 1), random({24, 40}, 2), random({40}, 3), random({2, 5, 40}, 4)});
}

TEST_CASE("kernel: a norm that gives its input on") {
  agree(
      [](const Kernels& k, const auto& in) {
        const Normed made = k.norm(in[0], in[1], in[2], 1e-5);
        return made.x * 3 + made.y;
      },
      {random({2, 5, 24}, 1), random({24}, 2), random({24}, 3)});
}

TEST_CASE("kernel: linear with GELU, also far from zero") {
  agree([](const Kernels& k, const auto& in) { return k.linear_gelu(in[0], in[1], in[2]); },
        {random({3, 7, 24}, 1), random({24, 33}, 2), random({33}, 3, 4)});
}

TEST_CASE("kernel: attention at lengths within, at and beyond a block of queries, with and without dropout") {
  for (const double dropout : {0.0, 0.3}) {
    for (const std::int64_t length : {1, 7, 64, 65, 130}) {
      CAPTURE(dropout);
      CAPTURE(length);
      agree([=](const Kernels& k, const auto& in) { return k.attention(in[0], 3, dropout, 17); },
            {random({2, length, 3 * 24}, 5)});
    }
  }
}

TEST_CASE("kernel: attention in which every token sees every token") {
  for (const double dropout : {0.0, 0.3}) {
    for (const std::int64_t length : {2, 7, 65, 130}) {
      CAPTURE(dropout);
      CAPTURE(length);
      agree([=](const Kernels& k,
                const auto& in) { return k.bidirectional_attention(in[0], in[1], in[2], 3, dropout, 17); },
            {random({2, length, 24}, 5), random({2, length, 24}, 6), random({2, length, 24}, 7)});
    }
  }
}

TEST_CASE("kernel: projection, with a bias and without") {
  agree([](const Kernels& k, const auto& in) { return k.project(in[0], in[1], in[2]); },
        {random({2, 5, 24}, 1), random({40, 24}, 2), random({40}, 3)});
  agree([](const Kernels& k, const auto& in) { return k.project(in[0], in[1], Tensor()); },
        {random({2, 5, 24}, 1), random({40, 24}, 2)});
}

TEST_CASE("kernel: RMS norm that gives its input on") {
  agree(
      [](const Kernels& k, const auto& in) {
        const Normed made = k.rms_norm(in[0], in[1], 1e-5);
        return made.x * 3 + made.y;
      },
      {random({2, 5, 37}, 1), random({37}, 2)});
}

TEST_CASE("kernel: RMS norm whose weight multiplies before the result is rounded, greater by 1 or not") {
  for (const NormScale how : {NormScale::wide, NormScale::plus_one}) {
    agree(
        [=](const Kernels& k, const auto& in) {
          return k.rms_norm(in[0], {in[1], how}, 1e-5).y;
        },
        {random({2, 5, 37}, 1), random({37}, 2)});
  }
  const Tensor x = random({3, 8}, 1), weight = random({8}, 2);
  CHECK(distance(plain().rms_norm(x, {weight, NormScale::plus_one}, 1e-5).y, plain().rms_norm(x, weight + 1, 1e-5).y) <
        1e-6);
}

TEST_CASE("kernel: the gradient of a part of a parameter arrives in that part of the parameter's") {
  const Tensor x = random({1, 5, 24}, 1), whole = random({40, 24}, 2).requires_grad_(true);
  whole.mutable_grad() = at::zeros_like(whole);
  const Tensor y = fused().project(x, whole.narrow(0, 8, 16), Tensor());
  torch::autograd::backward({y}, {at::ones_like(y)});
  const Tensor expected = x.view({5, 24}).sum(0).expand({16, 24});
  CHECK(distance(whole.grad().narrow(0, 8, 16), expected) < 1e-6);
  CHECK(whole.grad().abs().sum().item<float>() ==
        doctest::Approx(whole.grad().narrow(0, 8, 16).abs().sum().item<float>()));
}

TEST_CASE("kernel: SwiGLU, also far from zero") {
  agree([](const Kernels& k, const auto& in) { return k.swiglu(in[0], in[1]); },
        {random({3, 7, 33}, 1, 8), random({3, 7, 33}, 2)});
}

TEST_CASE("kernel: GeGLU") {
  agree([](const Kernels& k, const auto& in) { return k.geglu(in[0], in[1]); },
        {random({2, 5, 33}, 1, 3), random({2, 5, 33}, 2)});
}

TEST_CASE("kernel: threads share rows and heads, and no bit depends on their number") {
  const Layer layer = [](const Kernels& k, const auto& in) {
    const Tensor y = k.swiglu(in[0], in[1]) + k.geglu(in[1], in[0]) + k.rms_norm(in[0], in[2], 1e-5).y;
    return y + k.grouped_attention(in[0], in[3], in[3], {.heads = 30});
  };
  const std::vector<Tensor> inputs = {random({3, 70, 600}, 1), random({3, 70, 600}, 2), random({600}, 3),
                                      random({3, 70, 200}, 4)};
  const auto alone = results(fused(), layer, inputs);
  at::set_num_threads(3);
  const auto shared = results(fused(), layer, inputs);
  at::set_num_threads(1);
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(at::equal(shared[i], alone[i]));
}

TEST_CASE("kernel: rotation by position keeps lengths, and does nothing at position 0") {
  const Tensor angles_TR = random({9, 4}, 7);
  angles_TR[0].zero_();
  const Tensor cos_TR = angles_TR.cos(), sin_TR = angles_TR.sin(), x_BTE = random({2, 7, 3 * 8}, 1);
  agree([&](const Kernels& k, const auto& in) { return k.rotate(in[0], cos_TR, sin_TR); }, {x_BTE});
  for (const Kernels* const kernels : {&plain(), &fused()}) {
    const Tensor y_BTE = kernels->rotate(x_BTE, cos_TR, sin_TR);
    CHECK(at::equal(y_BTE.select(1, 0), x_BTE.select(1, 0)));
    CHECK(distance(y_BTE.view({2, 7, 3, 8}).norm(2, -1), x_BTE.view({2, 7, 3, 8}).norm(2, -1)) < 1e-6);
    CHECK(distance(y_BTE, x_BTE) > 0.1);
  }
}

TEST_CASE("kernel: attention whose heads share keys and values; with as many of them as queries it is the other one") {
  for (const double dropout : {0.0, 0.3}) {
    for (const std::int64_t length : {2, 64, 130}) {
      for (const std::int64_t shared : {1, 2, 6}) {
        CAPTURE(dropout);
        CAPTURE(length);
        CAPTURE(shared);
        agree(
            [=](const Kernels& k, const auto& in) {
              return k.grouped_attention(in[0], in[1], in[2], {6, dropout, 17});
            },
            {random({2, length, 6 * 8}, 5), random({2, length, shared * 8}, 6), random({2, length, shared * 8}, 7)});
      }
    }
  }
  const Tensor qkv_BTE = random({2, 70, 3 * 48}, 1);
  for (const Kernels* const kernels : {&plain(), &fused()}) {
    CHECK(at::equal(
        kernels->attention(qkv_BTE, 6, 0, 0),
        kernels->grouped_attention(qkv_BTE.narrow(2, 0, 48).contiguous(), qkv_BTE.narrow(2, 48, 48).contiguous(),
                                   qkv_BTE.narrow(2, 96, 48).contiguous(), {6})));
  }
}

TEST_CASE("kernel: attention with a window, a cap and a scale of its own") {
  for (const Attending& how :
       {Attending{.heads = 6, .window = 2}, Attending{.heads = 6, .window = 5}, Attending{.heads = 6, .window = 64},
        Attending{.heads = 6, .dropout = 0.3, .key = 17, .window = 70}, Attending{.heads = 6, .scale = 0.7},
        Attending{.heads = 6, .cap = 0.8},
        Attending{.heads = 6, .dropout = 0.3, .key = 17, .scale = 0.5, .cap = 1.5, .window = 9}}) {
    for (const std::int64_t length : {2, 64, 130}) {
      for (const std::int64_t shared : {1, 6}) {
        CAPTURE(how.window);
        CAPTURE(how.cap);
        CAPTURE(how.scale);
        CAPTURE(length);
        agree([=](const Kernels& k, const auto& in) { return k.grouped_attention(in[0], in[1], in[2], how); },
              {random({2, length, 6 * 8}, 5), random({2, length, shared * 8}, 6), random({2, length, shared * 8}, 7)});
      }
    }
  }
  const Tensor q = random({1, 100, 16}, 1), k = random({1, 100, 16}, 2), v = random({1, 100, 16}, 3);
  Tensor far = v.clone();
  far.narrow(1, 0, 20).fill_(1e30);
  for (const Kernels* const kernels : {&plain(), &fused()}) {
    const Tensor wide = kernels->grouped_attention(q, k, v, {2}),
                 near = kernels->grouped_attention(q, k, v, {.heads = 2, .window = 10}),
                 moved = kernels->grouped_attention(q, k, far, {.heads = 2, .window = 10});
    CHECK(at::equal(near.narrow(1, 29, 71), moved.narrow(1, 29, 71)));  // 28 sees 19 still
    CHECK(!at::equal(near.select(1, 28), moved.select(1, 28)));
    CHECK(at::equal(kernels->grouped_attention(q, k, v, {.heads = 2, .window = 1}), v));
    CHECK(distance(wide.narrow(1, 0, 10), near.narrow(1, 0, 10)) < 1e-6);
    CHECK(distance(wide, near) > 0.1);
    CHECK(distance(kernels->grouped_attention(q, k, v, {.heads = 2, .cap = 1e-9}),
                   kernels->grouped_attention(q, k, v, {.heads = 2, .scale = 1e-9})) < 1e-6);
  }
}

TEST_CASE("kernel: a cap is tanh, close to that in double near 0 and far from it, and what is not a number stays so") {
  const Tensor x = at::cat({random({5000}, 1, 0.1), random({5000}, 2, 20), at::zeros({1}), at::full({1}, INFINITY)});
  Tensor y = x.clone(), slopes = at::empty_like(x);
  cap(y.data_ptr<float>(), slopes.data_ptr<float>(), x.numel(), 7);
  const Tensor expected = (x.to(at::kDouble) / 7).tanh();
  CHECK((y.to(at::kDouble) - expected * 7).abs().max().item<double>() < 2e-6);
  CHECK(((y.to(at::kDouble) - expected * 7) / expected.abs().clamp_min(1e-30) / 7).abs().max().item<double>() < 1e-6);
  CHECK((slopes.to(at::kDouble) - (1 - expected * expected)).abs().max().item<double>() < 5e-7);
  float bad[] = {NAN, 1};
  cap(bad, nullptr, 2, 7);
  CHECK(std::isnan(bad[0]));
  CHECK(!std::isnan(bad[1]));
}

TEST_CASE("kernel: a sink takes its share of each head's attention") {
  for (const std::int64_t window : {0, 3}) {
    const Attending how{.heads = 3, .window = window};
    const std::vector<Tensor> inputs = {random({2, 9, 24}, 5), random({2, 9, 24}, 6), random({2, 9, 24}, 7),
                                        random({3}, 8)};
    const auto sunk = results(
        plain(),
        [&](const Kernels& k, const auto& in) {
          Attending attending = how;
          attending.sinks_H = in[3];
          return k.grouped_attention(in[0], in[1], in[2], attending);
        },
        inputs);
    // As a key of no value and a score of its own: p = exp(s) / (exp(sink) + sum of exp(s)).
    const auto expected = results(
        plain(),
        [&](const Kernels&, const auto& in) {
          const auto heads = [](const Tensor& x) { return x.to(at::kDouble).view({2, 9, 3, 8}).transpose(1, 2); };
          Tensor e = (at::matmul(heads(in[0]), heads(in[1]).transpose(-2, -1)) / std::sqrt(8.0)).exp().tril();
          if (window > 0) e = e.triu(1 - window);
          const Tensor p = e / (e.sum(-1, true) + in[3].to(at::kDouble).exp().view({1, 3, 1, 1}));
          return at::matmul(p, heads(in[2])).transpose(1, 2).reshape({2, 9, 24}).to(at::kFloat);
        },
        inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(distance(sunk[i], expected[i]) < 2e-6);
  }
}

TEST_CASE("kernel: attention does not look ahead") {
  const Tensor qkv_BTE = random({1, 100, 48}, 1);
  Tensor changed_BTE = qkv_BTE.clone();
  changed_BTE.narrow(1, 80, 20).fill_(1e30);
  const Tensor before = fused().attention(qkv_BTE, 2, 0, 0), after = fused().attention(changed_BTE, 2, 0, 0);
  CHECK(at::equal(before.narrow(1, 0, 80), after.narrow(1, 0, 80)));
  CHECK(!at::equal(before, after));
}

TEST_CASE("kernel: embedding adds up the rows of a token that comes again") {
  const Tensor tokens_BT = at::randint(0, 6, {3, 9}, unit::generator(4), at::TensorOptions(at::kLong));
  agree([&](const Kernels& k, const auto& in) { return k.embedding(in[0], tokens_BT); }, {random({8, 16}, 1)});
}

TEST_CASE("kernel: products large enough for oneDNN, of matrices and of their transposes, added to what is there") {
  for (const bool a_turned : {false, true}) {
    for (const bool b_turned : {false, true}) {
      const Tensor a = a_turned ? random({300, 200}, 1).t() : random({200, 300}, 1);
      const Tensor b = b_turned ? random({100, 300}, 2).t() : random({300, 100}, 2);
      const Tensor sum = random({200, 100}, 3);
      Tensor wide = at::zeros({200, 110});
      const Tensor out = wide.narrow(1, 4, 100);
      out.copy_(sum);
      multiply(out, a, b, 0.5, 3);
      CHECK(distance(out, sum.to(at::kDouble) * 0.5 + a.to(at::kDouble).mm(b.to(at::kDouble)) * 3) < 1e-6);
      CHECK(wide.sum(0)[3].item<float>() == 0);
      CHECK(wide.sum(0)[104].item<float>() == 0);
    }
  }
}

TEST_CASE("kernel: products of bfloat16 along every longest side are those of float32, rounded once") {
  struct Shape {
    std::int64_t m, k, n;
  };
  for (const Shape& s : {Shape{40, 30, 2500}, Shape{2500, 40, 30}, Shape{40, 2500, 30}, Shape{7, 5, 6}}) {
    for (const double beta : {0.0, 1.0}) {
      const Tensor a = random({s.m, s.k}, 1).to(at::kBFloat16), b = random({s.n, s.k}, 2).to(at::kBFloat16).t();
      const Tensor sum = random({s.m, s.n}, 3).to(at::kBFloat16), out = sum.clone();
      multiply(out, a, b, beta, 3);
      const auto exact = [](const Tensor& x) { return x.to(at::kDouble); };
      CHECK(distance(out, exact(sum) * beta + exact(a).mm(exact(b)) * 3) < 3e-3);
    }
  }
}

/// A copy of x that begins at a random place, a multiple of `step` numbers away from what memory is aligned to.
Tensor placed(const Tensor& x, std::mt19937_64& chance, std::int64_t step) {
  const auto offset = static_cast<std::int64_t>(chance() % 64) * step;
  return at::empty({x.numel() + 64 * step}, x.options()).narrow(0, offset, x.numel()).view(x.sizes()).copy_(x);
}

/// In 1,000 random places, of float32 or bfloat16.
void place_products(at::ScalarType type) {
  CAPTURE(type);
  std::mt19937_64 chance(20261121);
  struct Shape {
    std::int64_t m, k, n;
  };
  // Below and above what oneDNN is asked for; odd ones leave a rest to every vector.
  const std::vector<Shape> shapes = {{64, 64, 80}, {33, 17, 101}, {1, 768, 50}, {256, 131, 129}, {128, 768, 96}};
  std::vector<Tensor> first;
  for (int i = 0; i < 1000; ++i) {
    const std::size_t which = i < 20 ? static_cast<std::size_t>(i) : chance() % 20;
    const Shape& s = shapes[which / 4];
    const bool turned = which % 2 == 1, torch = which % 4 > 1;
    // MKL's product with one row has other bits off the 64 bytes that LibTorch's allocator keeps.
    const std::int64_t step = s.m == 1 ? 64 / static_cast<std::int64_t>(at::elementSize(type)) : 1;
    const auto matrix = [&](std::int64_t rows, std::int64_t columns, std::uint64_t key) {
      return placed(random({rows, columns}, key).to(type), chance, step);
    };
    const Tensor a = matrix(s.m, s.k, 1);
    const Tensor b = turned ? matrix(s.n, s.k, 2).t() : matrix(s.k, s.n, 2);
    Tensor out = matrix(s.m, s.n, 3);
    if (torch) {
      at::addmm_out(out, out, a, b);
    } else {
      multiply(out, a, b, 1);
    }
    if (i < 20) first.push_back(out.clone());
    CAPTURE(i);
    CAPTURE(which);
    CHECK(at::equal(out, first[which]));
  }
}

TEST_CASE("kernel: the bits of a product depend neither on where its matrices lie nor on what ran before") {
  place_products(at::kFloat);
  // Elsewhere it is LibTorch's slow way, which nothing takes.
  if (!unit::bfloat16_products().empty()) place_products(at::kBFloat16);
}

TEST_CASE("kernel: float32 becomes bfloat16 as LibTorch rounds it, and comes back") {
  Tensor numbers = random({10000}, 6, 3);
  numbers[0] = INFINITY, numbers[1] = -INFINITY, numbers[2] = -0.0F, numbers[3] = 3.4e38F, numbers[4] = 1e-40F;
  numbers[5] = 1 + 1.0F / 256, numbers[6] = 1 + 3.0F / 256;  // half way: to the even one
  Tensor made = at::empty({10000}, at::kBFloat16), back = at::empty({10000});
  auto* const place = static_cast<device::Bfloat16*>(made.data_ptr());
  narrow(numbers.data_ptr<float>(), place, 10000);
  CHECK(at::equal(made, numbers.to(at::kBFloat16)));
  widen(place, back.data_ptr<float>(), 10000);
  CHECK(at::equal(back, made.to(at::kFloat)));
  const float bad[] = {NAN, -NAN, std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffffffffu)};
  narrow(bad, place, 4);
  CHECK(made.narrow(0, 0, 4).isnan().all().item<bool>());
}

TEST_CASE("kernel: loss of more rows than are kept at once, and without a gradient") {
  const Tensor targets_N = at::randint(0, 103, {53}, unit::generator(4), at::TensorOptions(at::kLong));
  const std::vector<Tensor> inputs = {random({53, 16}, 1), random({103, 16}, 2)};
  for (const double cap : {0.0, 1.5}) {
    CAPTURE(cap);
    agree([&](const Kernels& k, const auto& in) { return k.loss(in[0], in[1], targets_N, cap); }, inputs);
    CHECK(distance(fused().loss(inputs[0], inputs[1], targets_N, cap),
                   plain().loss(inputs[0], inputs[1], targets_N, cap)) < 2e-6);
  }
  CHECK(distance(plain().loss(inputs[0], inputs[1], targets_N, 1.5), plain().loss(inputs[0], inputs[1], targets_N, 0)) >
        0.01);
}

TEST_CASE("kernel: loss, also of a loss that is scaled") {
  const Tensor targets_N = at::randint(0, 1003, {11}, unit::generator(4), at::TensorOptions(at::kLong));
  for (const double cap : {0.0, 1.5}) {
    agree([&](const Kernels& k, const auto& in) { return k.loss(in[0], in[1], targets_N, cap); },
          {random({11, 16}, 1), random({1003, 16}, 2)});
  }
}

TEST_CASE("kernel: what is not a number stays so, and a certain token costs nothing") {
  float values[] = {1, NAN, 3, -INFINITY, INFINITY};
  gelu(values, values, 5);
  CHECK(std::isnan(values[1]));
  CHECK(!std::isfinite(values[3]));
  CHECK(values[4] == INFINITY);
  for (const float bad : {NAN, INFINITY}) {
    std::vector<float> row(40, 1.0F);
    row[20] = bad;
    CHECK(std::isnan(cross_entropy(row.data(), 40, 3, 1, true)));
    softmax(row.data(), 40);
    CHECK(std::isnan(row[20]));
  }
  std::vector<float> row(100, -200.0F);
  row[7] = 200;
  CHECK(cross_entropy(row.data(), 100, 7, 1, true) == 0);
  CHECK(row[7] == 0);
}

TEST_CASE("kernel: softmax is close to that in double, at every length") {
  for (const std::int64_t n : {1, 2, 15, 16, 17, 31, 100, 5000}) {
    const Tensor x = random({n}, static_cast<std::uint64_t>(n), 2);
    const Tensor expected = at::softmax(x.to(at::kDouble), 0);
    softmax(x.data_ptr<float>(), n);
    CHECK((x.to(at::kDouble) / expected - 1).abs().max().item<double>() < 2e-6);
  }
}

}  // namespace
}  // namespace zs::kernel

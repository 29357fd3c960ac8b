// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T tokens, C width, H heads, D = C/H, V vocabulary.
#include "model/gpt2.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "kernel/kernels.hpp"
#include "unit/random.hpp"

namespace zs::model {
namespace {

using at::Tensor;
using unit::Parameter;
using unit::Pass;
using Init = unit::Parameter::Init;

struct Size {
  std::string_view name;
  std::int64_t layers, heads, width, positions, vocabulary;
};
constexpr std::array<Size, 5> kSizes = {{
    {"tiny", 4, 4, 128, 256, 256},
    {"gpt2", 12, 12, 768, 1024, 50257},
    {"gpt2-medium", 24, 16, 1024, 1024, 50257},
    {"gpt2-large", 36, 20, 1280, 1024, 50257},
    {"gpt2-xl", 48, 25, 1600, 1024, 50257},
}};
constexpr double kNormEpsilon = 1e-5;

struct Shared {
  std::int64_t C, H, T, V;
  double dropout;
  const kernel::Kernels* kernels;
};

class Embedding final : public unit::Unit {
 public:
  Embedding(const Shared& shared, const Settings& settings)
      : Unit(
            "embedding",
            begun(
                {{"transformer.wte.weight", {shared.V, shared.C}, Init::normal, settings.init_mean, settings.init_std},
                 {"transformer.wpe.weight", {shared.T, shared.C}, Init::normal, settings.init_mean, settings.init_std}},
                settings)),
        shared_(shared) {}

  Tensor forward(const Tensor&, std::span<const Tensor> own, std::span<const Tensor>, const Pass& pass) const override {
    const Tensor& tokens_BT = pass.batch.tokens_BT;
    const Tensor x_BTC = shared_.kernels->embedding(own[0], tokens_BT) + own[1].narrow(0, 0, tokens_BT.size(1));
    return unit::dropout(x_BTC, pass.training ? shared_.dropout : 0, unit::mix(pass.stream, name()));
  }

 private:
  Shared shared_;
};

class Block final : public unit::Unit {
 public:
  Block(std::int64_t index, const Shared& shared, const Settings& settings, double residual_std)
      : Unit("h." + std::to_string(index),
             begun(parameters("transformer.h." + std::to_string(index) + ".", shared.C, settings, residual_std),
                   settings)),
        shared_(shared) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> own, std::span<const Tensor>,
                 const Pass& pass) const override {
    const double p = pass.training ? shared_.dropout : 0;
    const std::uint64_t key = unit::mix(pass.stream, name());
    const auto& kernels = *shared_.kernels;
    const auto norm = [&](const Tensor& in, int weight) {
      return kernels.norm(in, own[weight], own[weight + 1], kNormEpsilon);
    };
    const auto add = [&](const Tensor& residual, const Tensor& in, int weight, std::uint64_t site) {
      if (p == 0) return kernels.linear_add(in, own[weight], own[weight + 1], residual);
      return residual + unit::dropout(kernels.linear(in, own[weight], own[weight + 1]), p, unit::mix(key, site));
    };
    const auto [x, normed_BTC] = norm(x_BTC, 0);
    const Tensor qkv_BTE = kernels.linear(normed_BTC, own[2], own[3]);
    const auto [middle, hidden_in_BTC] =
        norm(add(x, kernels.attention(qkv_BTE, shared_.H, p, unit::mix(key, 1)), 4, 2), 6);
    return add(middle, kernels.linear_gelu(hidden_in_BTC, own[8], own[9]), 10, 3);
  }

 private:
  Shared shared_;

  static std::vector<Parameter> parameters(const std::string& prefix, std::int64_t C, const Settings& settings,
                                           double residual_std) {
    const double mean = settings.init_mean, std = settings.init_std;
    std::vector<Parameter> all;
    const auto layer_norm = [&](const std::string& name) {
      all.push_back({prefix + name + ".weight", {C}, Init::ones, 0, 0, false});
      all.push_back({prefix + name + ".bias", {C}, Init::zeros, 0, 0, false});
    };
    const auto matrix = [&](const std::string& name, std::int64_t in, std::int64_t out, double its_std) {
      all.push_back({prefix + name + ".weight", {in, out}, Init::normal, mean, its_std});
      all.push_back({prefix + name + ".bias", {out}, Init::zeros, 0, 0, false});
    };
    layer_norm("ln_1");
    matrix("attn.c_attn", C, 3 * C, std);
    matrix("attn.c_proj", C, C, residual_std);
    layer_norm("ln_2");
    matrix("mlp.c_fc", C, 4 * C, std);
    matrix("mlp.c_proj", 4 * C, C, residual_std);
    return all;
  }
};

class Head final : public unit::Unit {
 public:
  Head(const Shared& shared, const Settings& settings)
      : Unit("head",
             begun({{"transformer.ln_f.weight", {shared.C}, Init::ones, 0, 0, false},
                    {"transformer.ln_f.bias", {shared.C}, Init::zeros, 0, 0, false}},
                   settings),
             /*borrows=*/0),
        kernels_(shared.kernels) {}

  Tensor forward(const Tensor& x_BTC, std::span<const Tensor> own, std::span<const Tensor> borrowed,
                 const Pass& pass) const override {
    const Tensor x_NC = kernels_->norm(x_BTC, own[0], own[1], kNormEpsilon).y.view({-1, x_BTC.size(2)});
    return kernels_->loss(x_NC, borrowed[0], pass.batch.targets_BT.view({-1}));
  }

 private:
  const kernel::Kernels* kernels_;
};

}  // namespace

std::vector<std::string> gpt2_names() {
  std::vector<std::string> names;
  for (const Size& size : kSizes) names.emplace_back(size.name);
  return names;
}

std::optional<Model> make_gpt2(const Settings& settings) {
  for (const Size& size : kSizes) {
    if (size.name != settings.name) continue;
    if (settings.seq_length < 0 || settings.seq_length > size.positions) {
      throw Error("model " + settings.name + " takes sequences of 1 to " + std::to_string(size.positions) +
                  " tokens, not " + std::to_string(settings.seq_length));
    }
    Model model;
    model.name = settings.name;
    model.num_layers = settings.num_layers > 0 ? settings.num_layers : size.layers;
    model.width = size.width;
    model.num_heads = size.heads;
    model.positions = size.positions;
    model.seq_length = settings.seq_length > 0 ? settings.seq_length : std::min(size.positions, kUsualLength);
    model.vocab_size = settings.vocab_size > 0 ? settings.vocab_size : size.vocabulary;
    const Shared shared{size.width,       size.heads,       size.positions,
                        model.vocab_size, settings.dropout, &kernel::chosen(settings.fused, settings.device)};
    const double residual_std = settings.init_std / std::sqrt(2.0 * static_cast<double>(model.num_layers));
    model.units.push_back(std::make_unique<Embedding>(shared, settings));
    for (std::int64_t i = 0; i < model.num_layers; ++i)
      model.units.push_back(std::make_unique<Block>(i, shared, settings, residual_std));
    model.units.push_back(std::make_unique<Head>(shared, settings));
    const double matrices =
        static_cast<double>(model.num_layers * 12 * size.width * size.width + model.vocab_size * size.width);
    const double attention = static_cast<double>(model.num_layers * 2 * size.width * model.seq_length);
    model.flops_per_token = 6 * (matrices + attention);
    return model;
  }
  return {};
}

}  // namespace zs::model
